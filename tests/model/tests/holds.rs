//! The library as it is: each property holds in each state.

use model::checker::{Found, check};
use model::configuration::all;

#[test]
fn each_property_holds() {
    for (name, configuration) in all() {
        match check(configuration) {
            Found::Nothing { states } => println!("{states:8} states  {name}"),
            Found::Counterexample(trace) => panic!("{name}:\n{trace}"),
        }
    }
}
