//! A report of a rehearsal, and a comparison of two, for a terminal.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::comparison::{ComparedType, EffectsChange, RehearsalComparison};
use super::report::{RehearsalReport, RehearsedDelivery, RehearsedType, name};
use crate::transaction::{RowsByTable, RowsWritten};

/// How many ids are shown for each reason.
const IDS: usize = 3;

/// How many reasons of a list are shown.
const REASONS: usize = 10;

/// The longest shown part of a reason or an id.
const MAX_TEXT: usize = 200;

impl fmt::Display for RehearsalReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for of in &self.types {
            write_type(f, of)?;
        }
        for refused in &self.refused {
            let endpoint = shown(&refused.endpoint);
            let expected = if refused.is_expected {
                ", as expected"
            } else {
                ""
            };
            let reason = shown(&refused.reason);
            writeln!(f, "{endpoint}: not rehearsed{expected}: {reason}")?;
        }
        if let Some(error) = &self.error {
            writeln!(f, "ended by an error: {}", shown(error))?;
        }
        let objections = self.objections();
        if objections.is_empty() {
            return match self.rehearsed() {
                0 => f.write_str("passed: there was nothing to rehearse"),
                rehearsed => write!(f, "passed: {rehearsed} deliveries were rehearsed"),
            };
        }
        f.write_str("not passed:")?;
        for objection in objections {
            write!(f, "\n  {}", shown(&objection))?;
        }
        Ok(())
    }
}

fn write_type(f: &mut fmt::Formatter<'_>, of: &RehearsedType) -> fmt::Result {
    let counts = [
        (of.processed_again, "as before"),
        (of.processed_now, "processed now"),
        (of.fails_now.len(), "fail now"),
        (of.fails_again.len(), "fail again"),
        (of.ignored_now.len(), "ignored now"),
        (of.not_run.len(), "not run"),
        (of.suspicious.len(), "suspicious"),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let counts: Vec<_> = counts
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    writeln!(f, "{}: {}", shown(&of.name()), counts.join(", "))?;
    write_effects(f, of)?;
    write_list(f, "fail now", &of.fails_now)?;
    write_list(f, "fail again", &of.fails_again)?;
    let ignored = match of.is_ignored_on_purpose {
        true => "ignored on purpose",
        false => "ignored now",
    };
    write_list(f, ignored, &of.ignored_now)?;
    write_list(f, "not run", &of.not_run)?;
    write_list(f, "suspicious", &of.suspicious)
}

/// The rows that the handlers of a type have written.
fn write_effects(f: &mut fmt::Formatter<'_>, of: &RehearsedType) -> fmt::Result {
    match of.written() {
        _ if of.effects.is_empty() => Ok(()),
        None => writeln!(f, "  written: not known, since `track_counts` is off"),
        Some(written) if written.is_empty() => writeln!(f, "  written: nothing"),
        Some(written) => {
            let tables = written.iter();
            let tables: Vec<_> = tables
                .map(|(table, rows)| format!("{} ({})", shown(table), rows_shown(*rows)))
                .collect();
            writeln!(f, "  written: {}", tables.join(", "))
        }
    }
}

fn rows_shown(rows: RowsWritten) -> String {
    let counts = [
        (rows.inserted, "inserted"),
        (rows.updated, "updated"),
        (rows.deleted, "deleted"),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let counts: Vec<_> = counts
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    match counts.is_empty() {
        true => "nothing".to_owned(),
        false => counts.join(", "),
    }
}

impl fmt::Display for RehearsalComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for of in &self.types {
            let what = what_changed(of);
            let (name, deliveries) = (shown(&of.name()), of.deliveries);
            writeln!(f, "{name}, {deliveries} compared: {what}")?;
            write_tables(f, &of.before, &of.now)?;
        }
        if self.passed() {
            return match self.types.is_empty() {
                true => f.write_str("passed: there was nothing to compare"),
                false => f.write_str("passed: each type writes as before"),
            };
        }
        f.write_str("not passed:")?;
        let mut against = self
            .types
            .iter()
            .filter(|of| of.change != EffectsChange::Same);
        against.try_for_each(|of| write!(f, "\n  {}: {}", shown(&of.name()), what_changed(of)))
    }
}

impl ComparedType {
    fn name(&self) -> String {
        name(&self.endpoint, self.event_type.as_deref())
    }
}

fn what_changed(of: &ComparedType) -> &'static str {
    match of.change {
        EffectsChange::Same if of.now.is_empty() => "writes nothing, as before",
        EffectsChange::Same => "writes as before",
        EffectsChange::More => "writes more",
        EffectsChange::Less => "writes less",
        EffectsChange::Elsewhere => "writes elsewhere",
        EffectsChange::Nothing => "no longer writes",
        EffectsChange::NotKnown => {
            "its writes are not known: no delivery was run by both versions, or `track_counts` is off"
        }
    }
}

/// A line for each table that differs.
fn write_tables(
    f: &mut fmt::Formatter<'_>,
    before: &RowsByTable,
    now: &RowsByTable,
) -> fmt::Result {
    let tables: BTreeSet<_> = before.keys().chain(now.keys()).collect();
    for table in tables {
        let rows_of = |written: &RowsByTable| written.get(table).copied().unwrap_or_default();
        let (before, now) = (rows_of(before), rows_of(now));
        if before != now {
            let (table, before, now) = (shown(table), rows_shown(before), rows_shown(now));
            writeln!(f, "  {table}: {before} before, {now} now")?;
        }
    }
    Ok(())
}

/// Writes a line for each reason, most frequent first.
fn write_list(f: &mut fmt::Formatter<'_>, what: &str, listed: &[RehearsedDelivery]) -> fmt::Result {
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for of in listed {
        by_reason
            .entry(&of.reason)
            .or_default()
            .push(&of.delivery_id);
    }
    let mut by_reason: Vec<_> = by_reason.into_iter().collect();
    by_reason.sort_by_key(|(_, ids)| std::cmp::Reverse(ids.len()));
    for (reason, ids) in by_reason.iter().take(REASONS) {
        let shown_ids: Vec<_> = ids.iter().take(IDS).map(|id| shown(id)).collect();
        let more = if ids.len() > IDS { ", …" } else { "" };
        let (count, reason) = (ids.len(), shown(reason));
        writeln!(
            f,
            "  {count} {what}: {reason} ({}{more})",
            shown_ids.join(", ")
        )?;
    }
    match by_reason.len().saturating_sub(REASONS) {
        0 => Ok(()),
        more => writeln!(f, "  {what} for {more} more reasons"),
    }
}

/// Puts a text on one line, without characters that a terminal takes for a command: a reason may quote a request.
fn shown(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(MAX_TEXT)
        .map(|char| if char.is_control() { ' ' } else { char })
        .collect();
    if text.chars().nth(MAX_TEXT).is_some() {
        shown.push('…');
    }
    shown
}
