//! Providers, tested through the layer: what they sign, how they identify deliveries, and how they take an answer.

mod answers;
mod delivery_ids;
mod handshakes;
mod panics;
mod replays;
mod secrets;
mod signatures;
mod tenants;
mod versions;
