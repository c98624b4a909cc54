//! Independent verification cases. They are in `tests/vectors/`, and in the folder that `WEBHOOK_VECTORS` names, if it
//! is set.
//!
//! Each file is a JSON list of cases, and is named after their provider.

mod kit;

use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};

use idempotent_webhook::Secret;
use idempotent_webhook::presets::{self, Preset};
use idempotent_webhook::provider::{Handshake, SecretError, Verified, VerifyError};

use crate::support::{Case, Expect, action_of, file_of, own_folder, read_folder};

/// The folders with cases: the project's own, and further ones.
fn folders() -> impl Iterator<Item = PathBuf> {
    let further = std::env::var_os("WEBHOOK_VECTORS").map(PathBuf::from);
    std::iter::once(own_folder()).chain(further)
}

/// The preset that a file is named after.
fn preset_of(file: &str) -> Option<&'static Preset> {
    presets::by_name(&file.replace('_', "-")).ok()
}

/// The preset's result for a case.
enum Judgement {
    Agrees,
    Differs(String),
    /// The case is not an HTTP request.
    NoRequest(String),
}

impl Case {
    fn verify(&self, preset: &Preset) -> Result<Outcome, Box<dyn Error>> {
        let head = self.head()?;
        let body = self.body()?;
        Ok(match self.provider(preset) {
            Err(error) => Outcome::SecretRefused(error),
            Ok(provider) => match provider.verify(&head, &body, self.now()) {
                Ok(Verified::Delivery(delivery)) => Outcome::Delivery {
                    id: delivery.id().to_string(),
                    event_type: delivery.event_type().map(str::to_owned),
                },
                Ok(Verified::Handshake(handshake)) => Outcome::Handshake(handshake),
                Ok(verified) => return Err(format!("taken for {verified:?}").into()),
                Err(error) => Outcome::Refused(error),
            },
        })
    }

    fn judge(&self, preset: &Preset, cases: &[Self]) -> Judgement {
        let outcome = match self.verify(preset) {
            Ok(outcome) => outcome,
            Err(error) => return Judgement::NoRequest(format!("no HTTP request: {error}")),
        };
        if let (Some(first), Outcome::Delivery { id, .. }) = (&self.duplicate_of, &outcome) {
            let first = cases.iter().find(|case| case.name == *first);
            if let Some(Ok(Outcome::Delivery { id: first, .. })) =
                first.map(|case| case.verify(preset))
                && first != *id
            {
                return Judgement::Differs(format!("delivery id {id:?}, and not {first:?}"));
            }
        }
        match self.difference(preset, &outcome) {
            None => Judgement::Agrees,
            Some(difference) => Judgement::Differs(difference),
        }
    }

    /// The action that qualifies the event type, if there is one.
    fn action(&self, preset: &Preset) -> Option<String> {
        let provider = self.provider(preset).ok()?;
        action_of(&provider, &self.head().ok()?, &self.body().ok()?)
    }

    /// How the outcome differs from the expected one, if it does.
    fn difference(&self, preset: &Preset, outcome: &Outcome) -> Option<String> {
        let type_differs = |event_type: Option<&str>| {
            let expected = self.expect_event_type.as_deref();
            // For Recurly, the action of an `account` event is `created`.
            let is_action = || self.action(preset).as_deref() == expected;
            expected.is_some() && expected != event_type && !is_action()
        };
        match (self.expect, outcome) {
            (Expect::Accept, Outcome::Delivery { id, event_type }) => {
                if self.expect_delivery_id.as_ref().is_some_and(|e| e != id) {
                    Some(format!("delivery id {id:?}"))
                } else if type_differs(event_type.as_deref()) {
                    Some(format!("event type {event_type:?}"))
                } else {
                    None
                }
            }
            // The request is authentic, as the case expects. The case is not about the missing id.
            (Expect::Accept, Outcome::Refused(VerifyError::Identity(_)))
                if self.expect_delivery_id.is_none() && self.expect_event_type.is_none() =>
            {
                None
            }
            (Expect::Accept, Outcome::Handshake(handshake)) => {
                let is_expected = self.why.contains("handshake")
                    || self.expect_delivery_id.is_none()
                        && !type_differs(Some(handshake.event_type()));
                (!is_expected).then(|| format!("taken for a handshake: {handshake:?}"))
            }
            (Expect::Accept, Outcome::Refused(error)) => Some(format!("refused: {error:?}")),
            (Expect::Accept, Outcome::SecretRefused(error)) => Some(format!("refused: {error}")),
            (Expect::Reject, Outcome::Refused(VerifyError::Identity(error)))
                if !self.signature_valid =>
            {
                Some(format!("taken for authentic, and refused because {error}"))
            }
            (Expect::Reject, Outcome::Refused(_) | Outcome::SecretRefused(_)) => None,
            (Expect::Reject, Outcome::Delivery { .. }) => Some("accepted".into()),
            (Expect::Reject, Outcome::Handshake(_)) => Some("accepted as a handshake".into()),
        }
    }
}

/// The result of a request.
enum Outcome {
    Delivery {
        id: String,
        event_type: Option<String>,
    },
    Handshake(Handshake),
    Refused(VerifyError),
    SecretRefused(SecretError),
}

/// Prints a line, even if the test succeeds.
fn say(line: std::fmt::Arguments<'_>) {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}").unwrap();
}

#[derive(Default)]
struct Tally {
    agree: usize,
    disagree: Vec<String>,
    no_preset: usize,
    reported: Vec<String>,
}

impl Tally {
    fn print(&self, name: &str) {
        say(format_args!(
            "{name}: {} agree, {} disagree, {} no preset, {} reported",
            self.agree,
            self.disagree.len(),
            self.no_preset,
            self.reported.len()
        ));
    }
}

fn check_file(name: &str, cases: &[Case]) -> Tally {
    let mut tally = Tally::default();
    match preset_of(name) {
        None => tally.no_preset = cases.len(),
        Some(preset) => {
            for case in cases {
                let (difference, counts) = match case.judge(preset, cases) {
                    Judgement::Agrees => {
                        tally.agree += 1;
                        continue;
                    }
                    Judgement::Differs(difference) => (
                        difference,
                        !case.ambiguous.is_made() && !case.policy.is_made(),
                    ),
                    Judgement::NoRequest(reason) => (reason, false),
                };
                let difference = format!("{}: {difference}", case.name);
                if counts {
                    tally.disagree.push(difference);
                } else {
                    tally.reported.push(difference);
                }
            }
        }
    }
    tally.print(name);
    for reported in &tally.reported {
        say(format_args!("  reported  {reported}"));
    }
    for disagree in &tally.disagree {
        say(format_args!("  DISAGREE  {disagree}"));
    }
    tally
}

fn check_folder(folder: &Path) -> Tally {
    say(format_args!("{}", folder.display()));
    let mut total = Tally::default();
    for (name, cases) in read_folder(folder) {
        let tally = check_file(&name, &cases);
        total.agree += tally.agree;
        total.no_preset += tally.no_preset;
        total.disagree.extend(tally.disagree);
        total.reported.extend(tally.reported);
    }
    total.print("total");
    total
}

#[test]
fn presets_agree_with_all_cases() {
    for folder in folders() {
        let total = check_folder(&folder);
        assert!(total.agree > 0);
        assert!(total.disagree.is_empty());
    }
}

/// Each preset has cases in the project's own folder.
#[test]
fn each_preset_has_cases_of_its_own() {
    for preset in presets::ALL {
        let file = file_of(preset);
        assert!(file.is_file(), "{} is missing", file.display());
    }
}

/// If a preset did not say that it signs a time, its tolerance would seem to have no effect.
#[test]
fn a_preset_says_whether_it_signs_a_time() {
    for (name, cases) in read_folder(&own_folder()) {
        let Some(preset) = preset_of(&name) else {
            continue;
        };
        let signs_time = |case: &Case| {
            let (head, body) = (case.head().ok()?, case.body().ok()?);
            let verified = case.provider(preset).ok()?.verify(&head, &body, case.now());
            verified.ok()?.delivery()?.signed_at()
        };
        assert_eq!(
            preset
                .provider(Secret::new("a secret").unwrap())
                .signs_time(),
            cases.iter().any(|case| signs_time(case).is_some()),
            "{name}"
        );
    }
}
