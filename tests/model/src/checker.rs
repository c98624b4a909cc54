//! Searches all states breadth-first, so that a counterexample is as short as possible.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use crate::properties::Property;
use crate::steps::{Actor, Step};

/// A configuration with more states than this is too large.
const MAX_STATES: usize = 4_000_000;

/// What is checked: a set of states, and the steps between them.
pub trait Model {
    /// One state of the model.
    type State: Copy + Eq + Hash;

    /// The state before anything has happened.
    fn first(&self) -> Self::State;

    /// All steps from a state.
    fn steps(&self, state: &Self::State, into: &mut dyn FnMut(Step, Self::State));

    /// The property that this state alone violates, if any. `check` itself checks the properties of whole runs.
    fn broken(&self, state: &Self::State) -> Option<Property>;

    /// Whether something still has to happen, if nothing else goes wrong.
    fn is_due(&self, state: &Self::State) -> bool;
}

/// All states that a model reaches, and how it reaches them.
pub struct Reached<M: Model> {
    model: M,
    states: Vec<M::State>,
    /// For each state, the index of the state before it. The first state has its own index.
    before: Vec<u32>,
    places: HashMap<M::State, u32, BuildHasherDefault<Mix>>,
}

/// The steps to a state in which a property does not hold.
#[derive(Clone)]
pub struct Trace {
    /// The property that does not hold in the last state.
    pub broken: Property,
    /// The steps in order.
    pub steps: Vec<Step>,
}

/// A state of the depth-first search: its index, its successors, and how many of them have been visited.
type Call = (u32, Vec<(Actor, u32)>, usize);

/// The result of a search.
pub enum Found {
    /// Every property holds in every state.
    Nothing {
        /// How many states there are.
        states: usize,
    },
    /// A shortest counterexample.
    Counterexample(Trace),
}

/// Searches for a state in which a property does not hold. It first checks the properties of single states, and then
/// whether everything that is due gets done (`Stuck`, `Livelock`).
pub fn check(model: impl Model) -> Found {
    let mut reached = Reached {
        model,
        states: Vec::new(),
        before: Vec::new(),
        places: HashMap::default(),
    };
    match reached.explore().or_else(|| reached.without_end()) {
        Some(trace) => Found::Counterexample(trace),
        None => Found::Nothing {
            states: reached.states.len(),
        },
    }
}

impl<M: Model> Reached<M> {
    /// Finds all states, but stops at the first state that violates a property of single states.
    fn explore(&mut self) -> Option<Trace> {
        let mut next = Vec::new();
        self.add(self.model.first(), 0);
        let mut at = 0;
        while at < self.states.len() {
            next.clear();
            let from = self.states[at];
            self.model.steps(&from, &mut |_, state| next.push(state));
            for state in &next {
                self.add(*state, at as u32);
                if let Some(broken) = self.model.broken(state) {
                    return Some(self.trace(self.places[state], broken));
                }
            }
            at += 1;
        }
        None
    }

    fn add(&mut self, state: M::State, before: u32) {
        let place = self.states.len() as u32;
        if let Entry::Vacant(vacant) = self.places.entry(state) {
            vacant.insert(place);
            self.states.push(state);
            self.before.push(before);
            assert!(self.states.len() <= MAX_STATES, "too many states");
        }
    }

    /// The steps that lead to a state.
    fn trace(&self, mut place: u32, broken: Property) -> Trace {
        let mut path = Vec::new();
        while place != 0 {
            let before = self.before[place as usize];
            let (from, to) = (&self.states[before as usize], &self.states[place as usize]);
            self.model.steps(from, &mut |step, state| {
                if state == *to && path.last().is_none_or(|(place_of, _)| *place_of != place) {
                    path.push((place, step));
                }
            });
            place = before;
        }
        path.reverse();
        Trace {
            broken,
            steps: path.into_iter().map(|(_, step)| step).collect(),
        }
    }

    /// The steps from a state if nothing else goes wrong, with the indexes of the states that they lead to.
    fn undisturbed(&self, place: u32, into: &mut Vec<(Actor, u32)>) {
        into.clear();
        let state = &self.states[place as usize];
        self.model.steps(state, &mut |step, next| {
            if step.is_progress && next != *state {
                into.push((step.actor, self.places[&next]));
            }
        });
    }

    fn is_due(&self, place: u32) -> bool {
        self.model.is_due(&self.states[place as usize])
    }

    /// Finds a state in which something is due and stays due forever, although nothing else goes wrong: either there is
    /// no step (`Stuck`), or there is a cycle that is fair to each actor that has a step (`Livelock`).
    ///
    /// This is Tarjan's algorithm, over the states in which something is due.
    fn without_end(&self) -> Option<Trace> {
        const NEW: u32 = u32::MAX;
        let size = self.states.len();
        let (mut index, mut low) = (vec![NEW; size], vec![0_u32; size]);
        let mut on_stack = vec![false; size];
        let (mut stack, mut count) = (Vec::new(), 0);
        let mut calls: Vec<Call> = Vec::new();
        let mut worst: Option<(u32, Property)> = None;
        for root in 0..size as u32 {
            if index[root as usize] != NEW || !self.is_due(root) {
                continue;
            }
            let mut entering = Some(root);
            loop {
                if let Some(place) = entering.take() {
                    (index[place as usize], low[place as usize]) = (count, count);
                    count += 1;
                    stack.push(place);
                    on_stack[place as usize] = true;
                    let mut next = Vec::new();
                    self.undisturbed(place, &mut next);
                    if next.is_empty() {
                        note(&mut worst, place, Property::Stuck);
                    }
                    calls.push((place, next, 0));
                }
                let Some((place, next, at)) = calls.last_mut() else {
                    break;
                };
                let place = *place;
                if let Some((_, to)) = next.get(*at) {
                    *at += 1;
                    let to = *to;
                    if !self.is_due(to) {
                    } else if index[to as usize] == NEW {
                        entering = Some(to);
                    } else if on_stack[to as usize] {
                        low[place as usize] = low[place as usize].min(index[to as usize]);
                    }
                    continue;
                }
                calls.pop();
                if let Some((above, ..)) = calls.last() {
                    let above = *above as usize;
                    low[above] = low[above].min(low[place as usize]);
                }
                if low[place as usize] == index[place as usize] {
                    let start = stack.iter().rposition(|each| *each == place).unwrap_or(0);
                    let circle = stack.split_off(start);
                    for each in &circle {
                        on_stack[*each as usize] = false;
                    }
                    if circle.len() > 1 && self.is_fair(&circle) {
                        let first = circle.iter().min().copied().unwrap_or(place);
                        note(&mut worst, first, Property::Livelock);
                    }
                }
            }
        }
        worst.map(|(place, broken)| self.trace(place, broken))
    }

    /// Whether no actor waits forever if the cycle repeats forever: each actor takes a step in the cycle, or some state
    /// of the cycle offers the actor no step.
    fn is_fair(&self, circle: &[u32]) -> bool {
        let inside: std::collections::HashSet<u32> = circle.iter().copied().collect();
        let mut next = Vec::new();
        let (mut always, mut moves) = (Actor::ALL.to_vec(), Vec::new());
        for place in circle {
            self.undisturbed(*place, &mut next);
            always.retain(|actor| next.iter().any(|(each, _)| each == actor));
            for (actor, to) in &next {
                if inside.contains(to) {
                    moves.push(*actor);
                }
            }
        }
        always.iter().all(|actor| moves.contains(actor))
    }
}

/// Keeps the state that was reached first, by a shortest path.
fn note(worst: &mut Option<(u32, Property)>, place: u32, broken: Property) {
    if worst.is_none_or(|(first, _)| place < first) {
        *worst = Some((place, broken));
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, step) in self.steps.iter().enumerate() {
            writeln!(f, "{:3}  {step}", number + 1)?;
        }
        write!(f, "     broken: {:?}", self.broken)
    }
}

/// A fast hash of a few small numbers.
#[derive(Default)]
pub struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u8(*byte);
        }
    }

    fn write_u8(&mut self, byte: u8) {
        self.0 = (self.0.rotate_left(5) ^ u64::from(byte)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u8(number as u8);
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}
