//! The provider, retention and reconciliation.

use super::attempt::begin;
use super::{Actor, Steps};
use crate::configuration::{Configuration, Keep};
use crate::guards::Guard;
use crate::properties::Property;
use crate::state::{Attempt, Claim, Is, Phase, Row, Selected, Take, TakenBy, Tx};

impl Steps<'_, Configuration> {
    pub(super) fn upkeep(&mut self) {
        self.provider();
        self.reconciliation();
        if self.model.retention {
            self.retention();
        }
    }

    /// The provider sends the delivery again at any moment.
    fn provider(&mut self) {
        let Some(slot) = self.free_slot() else { return };
        if self.state.left.requests == 0 {
            return;
        }
        let phase = match self.model.keep {
            Keep::Failed => begin(self.model.claims_late),
            Keep::All | Keep::AcceptFirst => Phase::Accept,
        };
        let answers_at_once =
            self.model.keep == Keep::AcceptFirst && !self.model.has(Guard::AcceptedIsKept);
        for number in 0..2 {
            let process = self.state.processes[usize::from(number)];
            if !process.lives {
                continue;
            }
            if !process.handles {
                let what = match number {
                    0 => "sends it to process 1, which ignores it",
                    _ => "sends it to process 2, which ignores it",
                };
                // The process ignores the type before it looks at the kept row. This 200
                // acknowledges nothing.
                self.may(Actor::Provider, what, |state| state.left.requests -= 1);
                continue;
            }
            let what = match number {
                0 => "sends it to process 1",
                _ => "sends it to process 2",
            };
            self.may(Actor::Provider, what, |state| {
                state.left.requests -= 1;
                state.acknowledged |= answers_at_once;
                state.allowed += u8::from(state.forgotten);
                state.forgotten = false;
                state.attempts[slot] = Some(Attempt {
                    process: number,
                    is_request: true,
                    take: Take::None,
                    is_retry: false,
                    phase,
                    tx: Tx::None,
                    has_row: false,
                    aborted: false,
                    was_silent: process.silent,
                    discarded: false,
                    told_reprocessed: false,
                });
            });
        }
    }

    fn reconciliation(&mut self) {
        let (actor, state) = (Actor::Reconciliation, self.state);
        let is_unknown = state.claim == Claim::None && state.row.is_none();
        if state.left.lists > 0 && is_unknown && !state.missing && !state.set_aside && !state.pruned
        {
            self.may(actor, "finds that it is missing (`missing.sql`)", |state| {
                state.left.lists -= 1;
                state.missing = true;
            });
        }
        if !state.missing {
            return;
        }
        let looks = self.model.has(Guard::ListedIsNotSetAside);
        let new_numbers = self.model.has(Guard::NewNumbers);
        let is_processed = state.claim != Claim::None && self.model.has(Guard::AcceptLooks);
        let is_known = is_processed || state.row.is_some() || state.set_aside && looks;
        self.may(
            actor,
            "keeps it, unless it is known (`accept.sql`)",
            |state| {
                state.missing = false;
                if !is_known {
                    if state.set_aside {
                        state.breaks(Property::SetAsideIsNotMissing);
                    }
                    state.insert(Row::listed(), new_numbers);
                }
            },
        );
    }

    fn retention(&mut self) {
        let (actor, state) = (Actor::Retention, self.state);
        let has = |guard| self.model.has(guard);
        let is_over = state.left.requests == 0 && !state.has_request() && !state.missing;
        let remembers = has(Guard::RememberPruned);
        let (redelivery_window, still_old, locks) = (
            has(Guard::RedeliveryWindow),
            has(Guard::StillOld),
            has(Guard::ResolvedIsLocked),
        );
        let may_be_deleted = state.row.is_none_or(|row| row.is == Is::Processed);
        let leaves_kept = has(Guard::StillKept);
        if state.claim == Claim::Young && (is_over || !redelivery_window) {
            self.may(actor, "the claim is older than the retention", |state| {
                state.claim = Claim::Old;
            });
        }
        if state.claim == Claim::Old
            && (may_be_deleted || !leaves_kept)
            && state.retention.is_none()
        {
            self.may(actor, "selects the claim", |state| {
                state.retention = Some(Selected::Claim);
            });
        }
        if state.retention == Some(Selected::Claim) {
            self.may(actor, "deletes the claim, if it is still old", |state| {
                state.retention = None;
                if state.claim == Claim::Old || !still_old {
                    state.claim = Claim::None;
                    state.pruned |= remembers;
                }
            });
        }
        let is_resolved = |row: &Row| row.is != Is::Processed && row.taken_by == TakenBy::Nobody;
        if state.claim != Claim::None
            && state.row.as_ref().is_some_and(is_resolved)
            && state.retention.is_none()
            && !(locks && state.is_row_locked())
        {
            self.may(actor, "selects what is processed", |state| {
                if locks {
                    state.row = None;
                } else {
                    state.retention = Some(Selected::Resolved);
                }
            });
        }
        if state.is_row_locked() {
            return;
        }
        if state.retention == Some(Selected::Resolved) {
            self.may(actor, "deletes what it has selected", |state| {
                state.retention = None;
                if state.row.as_ref().is_some_and(is_resolved) {
                    if state.claim == Claim::None {
                        state.breaks(Property::KeptIsNotLost);
                    }
                    state.row = None;
                }
            });
        }
        if state.row.is_some_and(|row| row.is != Is::Due) && is_over {
            self.may(
                actor,
                "deletes what is dead, recorded or archived",
                |state| {
                    state.ended |= state.row.is_some_and(|row| row.is == Is::Dead);
                    state.pruned |= remembers;
                    state.row = None;
                },
            );
        }
        if state.set_aside && is_over {
            self.may(actor, "deletes what was set aside", |state| {
                state.set_aside = false;
                state.pruned |= remembers;
            });
        }
    }
}
