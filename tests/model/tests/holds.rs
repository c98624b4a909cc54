//! The library as it is: each property holds in each state.

use model::checker::{Found, Model, check};
use model::configuration::all;
use model::places::Places;
use model::telling::{Changes, Deaths};

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
