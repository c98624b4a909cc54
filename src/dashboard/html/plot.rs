//! What came in over the last day, as bars.

use maud::{Markup, html};

use super::time::Timestamp;

/// The numbers of an hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::dashboard) struct Hour {
    /// Unix seconds.
    pub(in crate::dashboard) at: i64,
    /// Processed by a request, or by recovery.
    pub(in crate::dashboard) processed: i64,
    pub(in crate::dashboard) duplicates: i64,
    /// Failed attempts.
    pub(in crate::dashboard) failed: i64,
    pub(in crate::dashboard) rejected: i64,
    /// Accepted, to be processed later. Not in the bars, as each is processed or fails later.
    pub(in crate::dashboard) accepted: i64,
}

impl Hour {
    /// From the bottom up.
    fn parts(&self) -> [(&'static str, i64); 4] {
        [
            ("processed", self.processed),
            ("duplicate", self.duplicates),
            ("rejected", self.rejected),
            ("failed", self.failed),
        ]
    }

    fn total(&self) -> i64 {
        self.parts().iter().map(|(_, count)| count).sum()
    }
}

const HEIGHT: i64 = 40;
const BAR: i64 = 7;
const GAP: i64 = 2;

/// A bar for each hour. The text says the same in numbers.
pub(in crate::dashboard) fn plot(hours: &[Hour]) -> Markup {
    let highest = hours.iter().map(Hour::total).max().unwrap_or(0).max(1);
    let sum = |of: fn(&Hour) -> i64| hours.iter().map(of).sum::<i64>();
    let summary = format!(
        "Last 24 hours: {} processed, {} failed attempts, {} duplicates, {} rejected",
        sum(|hour| hour.processed),
        sum(|hour| hour.failed),
        sum(|hour| hour.duplicates),
        sum(|hour| hour.rejected),
    );
    let width = i64::try_from(hours.len()).unwrap_or(24) * (BAR + GAP);
    let mut x = 0;
    let bars = hours.iter().map(|hour| {
        let bar = bar(hour, x, highest);
        x += BAR + GAP;
        bar
    });
    html! {
        svg.plot role="img" aria-label=(summary) viewBox=(format!("0 0 {width} {HEIGHT}"))
            width=(width) height=(HEIGHT) preserveAspectRatio="none"
        {
            @for bar in bars { (bar) }
        }
    }
}

fn bar(hour: &Hour, x: i64, highest: i64) -> Markup {
    let mut top = HEIGHT;
    let parts = hour.parts().map(|(class, count)| {
        // What is there is seen, however little it is.
        let height = match count {
            0 => 0,
            count => (count * (HEIGHT - 4) / highest).max(1),
        };
        top -= height;
        (class, height, top)
    });
    let counts = hour.parts().map(|(name, count)| format!("{count} {name}"));
    #[expect(
        clippy::cast_precision_loss,
        reason = "far below what f64 holds exactly"
    )]
    let at = Timestamp(hour.at as f64);
    html! {
        g {
            title data-at=(format!("{at}")) { (at.hour()) ": " (counts.join(", ")) }
            rect.ground x=(x) y="0" width=(BAR) height=(HEIGHT) {}
            @for (class, height, y) in parts {
                @if height > 0 {
                    rect class=(class) x=(x) y=(y) width=(BAR) height=(height) {}
                }
            }
        }
    }
}

impl Timestamp {
    /// Such as `14:00 UTC`.
    fn hour(self) -> Markup {
        let text = self.to_string();
        let time = text.get(11..16).unwrap_or_default();
        html! { (time) " UTC" }
    }
}
