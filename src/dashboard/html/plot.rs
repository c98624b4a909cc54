//! Plots: the numbers of each hour, as bars.

use maud::{Markup, html};

use crate::dashboard::activity::{Counts, Hour, sum};
use crate::dashboard::html::{Timestamp, visible};
use crate::dashboard::rows::grouped;

/// The parts of a bar, from bottom to top, with their names in the style sheet.
fn parts(counts: &Counts) -> [(&'static str, i64); 4] {
    [
        ("processed", counts.processed),
        ("duplicate", counts.duplicates),
        ("rejected", counts.rejected),
        ("failed", counts.failed),
    ]
}

/// A summary in words, for readers who cannot see the bars.
fn summary(hours: &[Hour]) -> String {
    let all = sum(hours.iter().map(|hour| &hour.counts));
    format!(
        "Last {} hours: {} processed, {} failed attempts, {} duplicates, {} rejected",
        hours.len(),
        all.processed,
        all.failed,
        all.duplicates,
        all.rejected,
    )
}

/// The legend for the colours of all plots.
pub(in crate::dashboard) fn legend() -> Markup {
    html! {
        p.legend {
            span data-key="processed" { "processed" }
            span data-key="duplicate" { "duplicates" }
            span data-key="rejected" { "rejected" }
            span data-key="failed" { "failed attempts" }
        }
    }
}

/// The gap above each part of a bar, so that parts are separated by more than their colours.
const GAP: i64 = 1;

/// The smallest height of a part, including its gap.
const LEAST: i64 = 2;

/// The width and the height of a mark.
const MARK: i64 = 10;

/// The size of a plot, in its own units.
struct Size {
    height: i64,
    /// The room above the bars, for marks.
    headroom: i64,
    bar: i64,
    gap: i64,
}

/// A small plot with its total and its peak, because each plot has its own scale.
pub(in crate::dashboard) fn sparkline(hours: &[Hour]) -> Markup {
    const SIZE: Size = Size {
        height: 40,
        headroom: 0,
        bar: 7,
        gap: 2,
    };
    let all = sum(hours.iter().map(|hour| &hour.counts));
    let highest = highest(hours);
    let width = SIZE.width(hours);
    html! {
        div.sparkline {
            svg.plot role="img" aria-label=(summary(hours))
                viewBox=(format!("0 0 {width} {}", SIZE.height))
                width=(width) height=(SIZE.height) preserveAspectRatio="none"
            {
                (SIZE.bars(hours, highest, |_| false))
            }
            span.scale {
                (grouped(all.total())) " in all"
                @if highest > 0 { br; "peak " (grouped(highest)) "/h" }
                @if all.missed > 0 { br; (grouped(all.missed)) " by reconciliation" }
            }
        }
    }
}

/// A plot with axes. Hours in which an application version started are marked.
pub(in crate::dashboard) fn plot(hours: &[Hour], began: &[(Timestamp, Vec<&str>)]) -> Markup {
    let size = match hours.len() {
        0..=48 => Size {
            height: 160,
            headroom: MARK,
            bar: 20,
            gap: 4,
        },
        _ => Size {
            height: 160,
            headroom: MARK,
            bar: 4,
            gap: 1,
        },
    };
    let (width, highest) = (size.width(hours), highest(hours));
    let is_marked = |at: Timestamp| began.iter().any(|(marked, _)| *marked == at);
    let step = if hours.len() > 48 { 24 } else { 3 };
    html! {
        figure.plot {
            div.peak { (grouped(highest)) "/h" }
            svg.plot role="img" aria-label=(summary(hours))
                viewBox=(format!("0 0 {width} {}", size.height)) preserveAspectRatio="none"
            {
                @let half = size.headroom + size.room() / 2;
                line.half x1="0" x2=(width) y1=(half) y2=(half) {}
                (size.bars(hours, highest, is_marked))
            }
            div.axis {
                @for hour in hours.iter().step_by(step) {
                    span { (hour.at.hour_and_day(hours.len() > 48)) }
                }
                span.now { "now" }
            }
            @if !began.is_empty() {
                ul.began {
                    @for (at, versions) in began {
                        li { (at) ": version " (visible(&versions.join(", "))) " began" }
                    }
                }
            }
        }
    }
}

fn highest(hours: &[Hour]) -> i64 {
    let totals = hours.iter().map(|hour| hour.counts.total());
    totals.max().unwrap_or(0)
}

impl Size {
    fn width(&self, hours: &[Hour]) -> i64 {
        i64::try_from(hours.len()).unwrap_or(24) * (self.bar + self.gap)
    }

    /// The height of the highest bar.
    fn room(&self) -> i64 {
        self.height - self.headroom
    }

    fn bars(&self, hours: &[Hour], highest: i64, is_marked: impl Fn(Timestamp) -> bool) -> Markup {
        let last = hours.last().map(|hour| hour.at);
        html! {
            @for (number, hour) in (0..).zip(hours) {
                @let x = number * (self.bar + self.gap);
                (self.bar(hour, x, highest, Some(hour.at) == last, is_marked(hour.at)))
            }
        }
    }

    /// The heights of the parts of a bar, each including the gap above it. Even the smallest part is visible, because
    /// the largest part is made smaller to leave room for it.
    fn heights(&self, counts: &Counts, highest: i64) -> [(&'static str, i64); 4] {
        let scaled = |count: i64| count * self.room() / highest.max(1);
        let mut heights = parts(counts).map(|(class, count)| match count {
            0 => (class, 0),
            count => (class, scaled(count).max(LEAST)),
        });
        let excess = heights.iter().map(|(_, height)| height).sum::<i64>() - scaled(counts.total());
        if let Some((_, largest)) = heights.iter_mut().max_by_key(|(_, height)| *height) {
            *largest = (*largest - excess).max(LEAST).min(*largest);
        }
        heights
    }

    fn bar(&self, hour: &Hour, x: i64, highest: i64, is_current: bool, is_marked: bool) -> Markup {
        let mut top = self.height;
        let heights = self.heights(&hour.counts, highest).map(|(class, height)| {
            top -= height;
            (class, height, top)
        });
        let counts = parts(&hour.counts).map(|(name, count)| format!("{count} {name}"));
        html! {
            g {
                title data-at=(hour.at.to_string()) {
                    (hour.at.hour()) ": " (counts.join(", "))
                    @if is_current { ", so far" }
                }
                rect.ground.current[is_current] x=(x) y=(self.headroom) width=(self.bar)
                    height=(self.room()) {}
                @for (class, height, y) in heights {
                    @if height > 0 {
                        rect class=(class) x=(x) y=(y) width=(self.bar)
                            height=(height - GAP) {}
                    }
                }
                @if is_marked {
                    @let (left, right) = (x + (self.bar - MARK) / 2, x + (self.bar + MARK) / 2);
                    @let tip = (left + right) / 2;
                    polygon.mark points=(format!("{left},0 {right},0 {tip},{}", MARK - 2)) {}
                }
            }
        }
    }
}

impl Timestamp {
    /// The hour, such as `14:00 UTC`.
    fn hour(self) -> Markup {
        let text = self.to_string();
        let time = text.get(11..16).unwrap_or_default();
        html! { (time) " UTC" }
    }

    /// The label on the axis: the hour, or the day if the plot covers several days.
    fn hour_and_day(self, has_days: bool) -> Markup {
        let text = self.to_string();
        let label = match has_days {
            true => text.get(5..10),
            false => text.get(11..16),
        };
        let kind = if has_days { "day" } else { "hour" };
        html! { time datetime=(text) data-as=(kind) { (label.unwrap_or_default()) } }
    }
}
