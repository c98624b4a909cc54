//! Compares the rehearsal reports of two versions of the application. A report says what a version writes for the
//! rehearsed deliveries.

use std::collections::{BTreeMap, HashMap};

use super::report::{RehearsalReport, RehearsedEffects, RehearsedType};
use crate::transaction::{RowsByTable, RowsWritten};

/// The difference between the effects of two versions, from [`RehearsalReport::compare`].
///
/// `Display` is for a terminal: a line for each event type, below it the tables that differ, and at the end whether the
/// comparison [passes](Self::passed).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RehearsalComparison {
    /// Each event type of each endpoint that both versions would process, in the order of names.
    pub types: Vec<ComparedType>,
}

/// What two versions write for the deliveries of an event type.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ComparedType {
    /// The endpoint.
    pub endpoint: String,
    /// The event type, if the deliveries have one.
    pub event_type: Option<String>,
    /// How many deliveries were compared: both versions would process them, and Postgres has counted what they write.
    pub deliveries: usize,
    /// How their writes have changed.
    pub change: EffectsChange,
    /// The rows that the earlier version writes for these deliveries, by table.
    pub before: BTreeMap<String, RowsWritten>,
    /// The rows that this version writes for these deliveries, by table.
    pub now: BTreeMap<String, RowsWritten>,
}

/// How a version's writes for the deliveries of an event type differ from the writes of the earlier version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EffectsChange {
    /// The same numbers of rows in the same tables, or nothing with either version.
    Same,
    /// More rows in the same tables.
    More,
    /// Fewer rows in total, but still some, and no rows in other tables.
    Less,
    /// In another table, by another statement than before (an update for an insert), or more in one table and fewer in
    /// another.
    Elsewhere,
    /// No rows with the new version, although the earlier version writes rows.
    Nothing,
    /// Not known: there is no delivery that both versions would process, or Postgres has not counted the rows.
    NotKnown,
}

impl RehearsalReport {
    /// Compares what the handlers of two versions write. `before` is the report of the earlier version, rehearsed
    /// on the same database.
    ///
    /// A delivery is compared only if both versions would process it. The rows of all deliveries of an event type are
    /// added up, and the sums are compared. So a single delivery that writes nothing is not a finding, because its
    /// handler may have nothing to do.
    ///
    /// ```no_run
    /// # use idempotent_webhook::recovery::RehearsalReport;
    /// # fn compare(now: RehearsalReport, file: &str) -> Result<bool, Box<dyn std::error::Error>> {
    /// let before: RehearsalReport = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    /// let compared = now.compare(&before);
    /// println!("{compared}");
    /// # Ok(
    /// now.passed() && compared.passed()
    /// # )
    /// # }
    /// ```
    pub fn compare(&self, before: &RehearsalReport) -> RehearsalComparison {
        let types = self.types.iter().filter_map(|now| {
            let mut earlier = before.types.iter();
            let earlier = earlier.find(|before| {
                before.endpoint == now.endpoint && before.event_type == now.event_type
            });
            // A delivery that one version does not process shows up in the report of that version. A type that the
            // earlier report does not have becomes `NotKnown`.
            let is_processed = !now.effects.is_empty();
            let is_mended = earlier.is_some_and(|before| before.effects.is_empty());
            (is_processed && !is_mended).then(|| ComparedType::of(now, earlier))
        });
        RehearsalComparison {
            types: types.collect(),
        }
    }
}

impl RehearsalComparison {
    /// Whether each event type writes as before. A type whose effects are [not known](EffectsChange::NotKnown) does
    /// not pass.
    ///
    /// The comparison does not cover failures, or deliveries that are not rehearsed: before a deploy, check
    /// [`RehearsalReport::passed`] as well.
    pub fn passed(&self) -> bool {
        self.types.iter().all(|of| of.change == EffectsChange::Same)
    }
}

impl ComparedType {
    fn of(now: &RehearsedType, before: Option<&RehearsedType>) -> Self {
        let effects_before = before.map_or(&[][..], |before| &before.effects);
        let by_delivery: HashMap<_, _> = effects_before
            .iter()
            .map(|effects| (key(effects), effects))
            .collect();
        let mut compared = Self {
            endpoint: now.endpoint.clone(),
            event_type: now.event_type.clone(),
            deliveries: 0,
            change: EffectsChange::NotKnown,
            before: RowsByTable::new(),
            now: RowsByTable::new(),
        };
        for effects in &now.effects {
            let before = by_delivery.get(&key(effects));
            let before = before.and_then(|before| before.written.as_ref());
            if let (Some(before), Some(now)) = (before, &effects.written) {
                compared.deliveries += 1;
                add(&mut compared.before, before);
                add(&mut compared.now, now);
            }
        }
        if compared.deliveries > 0 {
            compared.change = EffectsChange::between(&compared.before, &compared.now);
        }
        compared
    }
}

impl EffectsChange {
    fn between(before: &RowsByTable, now: &RowsByTable) -> Self {
        if before == now {
            return Self::Same;
        }
        if now.is_empty() {
            return Self::Nothing;
        }
        let (mut is_elsewhere, mut is_more, mut is_less) = (false, false, false);
        for table in before.keys().chain(now.keys()) {
            for (before, now) in counts(before, table).into_iter().zip(counts(now, table)) {
                is_elsewhere |= before == 0 && now > 0;
                is_more |= now > before;
                is_less |= now < before;
            }
        }
        match (is_elsewhere || is_more && is_less, is_more) {
            (true, _) => Self::Elsewhere,
            (false, true) => Self::More,
            (false, false) => Self::Less,
        }
    }
}

/// How many rows of a table are inserted, updated and deleted.
fn counts(written: &RowsByTable, table: &str) -> [u64; 3] {
    let rows = written.get(table).copied().unwrap_or_default();
    [rows.inserted, rows.updated, rows.deleted]
}

fn key(effects: &RehearsedEffects) -> (Option<&str>, &str) {
    (effects.tenant.as_deref(), &effects.delivery_id)
}

/// Adds the rows of one delivery.
pub(super) fn add(total: &mut RowsByTable, written: &RowsByTable) {
    for (table, rows) in written {
        *total.entry(table.clone()).or_default() += *rows;
    }
}
