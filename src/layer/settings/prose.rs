//! Tests that the documentation lists each setting, with the default that the code has.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that fails may panic"
)]

use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use crate::layer::idempotent_webhook::IdempotentWebhook;
use crate::presets;
use crate::provider::secret::Secret;
use crate::recovery::task::Recovery;
use crate::recovery::{Keep, QuotaLimits};

const README: &str = include_str!("../../../README.md");
const FOR_PROGRAMS: &str = include_str!("../../../llms.txt");
const LAYER: &str = include_str!("../idempotent_webhook.rs");
const VERIFYING_LAYER: &str = include_str!("../verification/layer.rs");
const KEEP: &str = include_str!("../../recovery/keep_settings.rs");
const OPERATING: &str = include_str!("../../documentation/operating.md");
const RECOVERY: &str = include_str!("../../documentation/recovery.md");

/// A pool that opens no connection.
fn pool() -> PgPool {
    PgPoolOptions::new().connect_lazy_with(PgConnectOptions::new())
}

/// A time in its largest unit, except that a day is written in hours: `10 s`, `1 min`, `24 h`.
fn short(time: Duration) -> String {
    match time.as_secs() {
        seconds if seconds % 3600 == 0 => format!("{} h", seconds / 3600),
        seconds if seconds % 60 == 0 => format!("{} min", seconds / 60),
        seconds => format!("{seconds} s"),
    }
}

/// The text after `Default: ` in the documentation of a setting, to the end of the sentence or the first comma.
fn said<'a>(source: &'a str, setting: &str) -> Option<&'a str> {
    let (before, _) = source.split_once(&format!("pub fn {setting}("))?;
    let (_, default) = before.rsplit_once("Default: ")?;
    default.split(['.', ',']).next()
}

#[tokio::test]
async fn the_timeouts_are_those_of_the_documentation() {
    let layer = IdempotentWebhook::new(
        pool(),
        "test",
        presets::github(Secret::new("a secret").unwrap()),
    );
    let settings = layer.settings();
    let verification = &settings.verification;
    for (setting, time) in [
        ("handler_timeout", settings.handler_timeout),
        ("body_timeout", verification.body_timeout),
        ("database_timeout", verification.lookup_timeout),
        ("retry_after", verification.retry_after),
    ] {
        let seconds = format!("{} seconds", time.as_secs());
        assert_eq!(said(LAYER, setting), Some(&*seconds), "{setting}");
        let row = OPERATING
            .lines()
            .find(|line| line.starts_with("| ") && line.contains(&format!("`{setting}(time)`")));
        let row = row.unwrap_or_default();
        assert!(row.contains(&short(time)), "{setting}: {row:?}");
    }
    for (setting, time) in [
        ("body_timeout", verification.body_timeout),
        ("lookup_timeout", verification.lookup_timeout),
        ("retry_after", verification.retry_after),
    ] {
        let seconds = format!("{} seconds", time.as_secs());
        assert_eq!(said(VERIFYING_LAYER, setting), Some(&*seconds), "{setting}");
    }
}

#[test]
fn the_guide_lists_each_setting_of_the_layer() {
    let settings = LAYER.split("pub fn ").skip(1).filter_map(|function| {
        let (name, arguments) = function.split_once('(')?;
        let name = name.split('<').next()?;
        arguments.starts_with("mut self").then_some(name)
    });
    let settings: Vec<_> = settings.collect();
    assert!(settings.len() > 10, "{settings:?}");
    let (_, table) = OPERATING
        .split_once("## Settings and their defaults")
        .unwrap();
    let (table, _) = table.split_once("\n## ").unwrap();
    for setting in settings {
        assert!(
            table.contains(&format!("`{setting}(")),
            "the guide has no `{setting}`"
        );
    }
}

#[tokio::test]
async fn the_backoff_is_that_of_the_documentation() {
    let keep = Keep::failed(&Recovery::new(pool()));
    let delays = keep.schedule.delays();
    let listed: Vec<String> = delays.iter().copied().map(short).collect();
    let texts = [
        (KEEP, format!("Default: {}.", listed.join(", "))),
        (
            FOR_PROGRAMS,
            format!("after {} and so on, for three days", listed[..3].join(", ")),
        ),
        (
            README,
            "for three days, with a backoff from 10 seconds to a day".to_owned(),
        ),
        (
            RECOVERY,
            "about three days after the first failure, the delivery is dead".to_owned(),
        ),
    ];
    for (page, text) in texts {
        assert!(page.contains(&text), "nothing says: {text}");
    }
    // Some pages state these values in words.
    let total: Duration = delays.iter().sum();
    assert_eq!(total.as_secs().div_ceil(24 * 60 * 60), 3);
    assert_eq!(
        (&*listed[0], listed.last().unwrap().as_str()),
        ("10 s", "24 h")
    );

    let (_, table) = RECOVERY
        .split_once("| recovery attempt | after |\n|---|---|\n")
        .unwrap();
    let (table, _) = table.split_once("\n\n").unwrap();
    let cells: Vec<&str> = table
        .lines()
        .map(|row| row.split('|').nth(2).unwrap().trim())
        .collect();
    let cells = cells.join(", ").replace(" after the first failure", "");
    assert_eq!(cells, listed.join(", "));
}

#[test]
fn the_quota_is_that_of_the_documentation() {
    let QuotaLimits { deliveries, bytes } = QuotaLimits::default();
    let deliveries = format!("{},{:03} deliveries", deliveries / 1000, deliveries % 1000);
    let bytes = format!("{} GiB", bytes >> 30);
    for (page, text) in [
        (KEEP, format!("Default: {deliveries}, {bytes}.")),
        (README, format!("{deliveries} and {bytes} by default")),
        (
            RECOVERY,
            format!("at most {deliveries} and {bytes} of bodies"),
        ),
    ] {
        assert!(page.contains(&text), "nothing says: {text}");
    }
}
