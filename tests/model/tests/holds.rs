//! The library as it is: each property holds in each state.

use model::checker::{Found, Model, check};
use model::configuration::all;
use model::places::Places;
use model::telling::{Changes, Deaths};
use model::turns::Turns;

#[track_caller]
fn holds(name: &str, model: impl Model) {
    match check(model) {
        Found::Nothing { states } => println!("{states:8} states  {name}"),
        Found::Counterexample(trace) => panic!("{name}:\n{trace}"),
    }
}

#[test]
fn each_property_holds() {
    for (name, configuration) in all() {
        holds(&name, configuration);
    }
}

#[test]
fn q4_what_is_told_is_what_is_true_in_the_end() {
    for (name, telling) in model::telling::all() {
        holds(&format!("a problem, {name}"), Changes(telling));
        holds(&format!("a death, {name}"), Deaths(telling));
    }
}

#[test]
fn growth_3_backends_are_bounded_and_places_come_back() {
    for silences in 0..=3 {
        holds(&format!("{silences} silences"), Places::of(silences));
    }
}

#[test]
fn handle_2_a_shared_task_is_done_by_one_process_at_a_time() {
    let disturbed = Turns {
        crashes: 1,
        silences: 2,
        losses: 2,
        clock_steps: 1,
        on_request: true,
        ..Turns::new()
    };
    holds("a turn, undisturbed", Turns::new());
    holds("a turn, disturbed", disturbed);
}
