//! The application around the layer: its mistakes, its types and its own tests.

mod auto_traits;
mod captures;
mod extractors;
mod mistakes;
mod probe;
mod testing_kit;
