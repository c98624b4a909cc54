//! The settings that a preset must have because of the facts about its provider.

use super::{Basis, Deadline, entries};
use crate::support::{Case, Expect, cases_of};

/// No answer of the layer makes a provider give up a delivery that could still be processed.
#[test]
fn p7_a_provider_delivers_again_after_each_answer_that_is_no_success() {
    for entry in entries() {
        let description = entry.provider.description();
        let after = &entry.facts.redelivered_after;
        let is_final = |status: u16| after.contains(status) == Some(false);
        // Nothing is delivered again after any of our answers.
        if is_final(500) && is_final(503) && is_final(429) {
            continue;
        }
        let failure = description.failure_status.map(|status| status.as_u16());
        let ours = match failure {
            Some(status) => vec![status],
            None => vec![400, 404, 408, 409, 413, 422, 500, 503],
        };
        for status in ours {
            assert!(!is_final(status), "{}: {status} is final", entry.name());
        }
        let rejection = description.rejection_status.as_u16();
        assert!(
            !is_final(rejection),
            "{}: {rejection} is final",
            entry.name()
        );
    }
}

/// P6: a tolerance that is shorter than the redelivery window would refuse a late retry for its
/// age.
#[test]
fn no_preset_with_a_signed_id_refuses_what_its_provider_may_deliver_again() {
    for entry in entries() {
        let provider = &entry.provider;
        let description = provider.description();
        let past = description.tolerance.past();
        let refuses = past.is_some_and(|past| past < description.redelivery_window);
        if provider.signs_time() && provider.signs_delivery_id() && refuses {
            assert!(
                entry.facts.retry.is_signed_anew(),
                "{}: its tolerance is shorter than its redelivery window, and nothing says for sure \
                 that a retry is signed at a new time",
                entry.name()
            );
        }
    }
}

#[test]
fn a_preset_that_deduplicates_nothing_says_that_a_retry_has_a_new_id() {
    for entry in entries() {
        if entry.provider.description().delivery_id.to_string() == "receipt" {
            assert!(!entry.facts.retry.has_same_id(), "{}", entry.name());
        }
    }
}

/// Alerts depend on `deadline_is_known`.
#[test]
fn y4_a_preset_says_truly_whether_the_deadline_is_known() {
    for entry in entries() {
        let is_known = entry.provider.description().deadline_is_known;
        assert_eq!(
            is_known,
            entry.facts.deadline != Deadline::Assumed,
            "{}",
            entry.name()
        );
    }
}

fn is_month(text: &str) -> bool {
    let numbers = text.split_once('-').and_then(|(year, month)| {
        let is_month = year.len() == 4 && month.len() == 2;
        let month: u32 = month
            .parse()
            .ok()
            .filter(|month| (1..=12).contains(month))?;
        is_month.then_some((year.parse::<u32>().ok()?, month))
    });
    numbers.is_some()
}

#[test]
fn each_entry_has_the_month_of_its_last_check() {
    for entry in entries() {
        let checked = &entry.facts.checked;
        assert!(is_month(checked), "{}: {checked}", entry.name());
    }
}

/// The month in `checked` alone does not show which sources somebody has looked at.
#[test]
fn what_was_compared_is_said_of_each_check_since_it_is_noted() {
    for entry in entries() {
        let months = entry.facts.compared.iter().map(|compared| &compared.month);
        for compared in &entry.facts.compared {
            assert!(is_month(&compared.month), "{}", entry.name());
            assert!(!compared.source.is_empty(), "{}", entry.name());
        }
        match months.max() {
            Some(newest) => assert_eq!(*newest, entry.facts.checked, "{}", entry.name()),
            None => assert!(
                entry.facts.checked.as_str() <= "2026-11",
                "{}",
                entry.name()
            ),
        }
    }
}

/// An assumed deadline is short, because more harm is done if the provider stops waiting before the
/// layer answers.
#[test]
fn a_deadline_that_nobody_publishes_is_assumed_to_be_short() {
    for entry in entries() {
        if entry.facts.deadline == Deadline::Assumed {
            let deadline = entry.provider.description().response_deadline;
            assert_eq!(deadline.as_secs(), 5, "{}", entry.name());
        }
    }
}

#[test]
fn a_handshake_is_described_where_one_is_answered() {
    for entry in entries() {
        if entry.provider.answers_handshakes() {
            assert!(entry.facts.handshake.is_some(), "{}", entry.name());
        }
    }
}

/// The stated basis must be neither better nor worse than the best case. The `vectors` tests check
/// that the cases are accepted.
#[test]
fn the_basis_is_the_best_case_that_verifies() {
    for entry in entries() {
        let cases = cases_of(entry.preset);
        let is_asserted = |case: &&Case| {
            case.expect == Expect::Accept
                && case.signature_valid
                && !case.policy.is_made()
                && !case.ambiguous.is_made()
        };
        let origins: Vec<_> = cases
            .iter()
            .filter(is_asserted)
            .filter_map(|case| case.origin.as_deref())
            .collect();
        let are_cases = [Basis::Suite, Basis::Example];
        let best = are_cases
            .into_iter()
            .find(|basis| origins.contains(&basis.as_str()));
        let basis = Some(entry.facts.basis).filter(|basis| are_cases.contains(basis));
        assert_eq!(basis, best, "{}", entry.name());
    }
}
