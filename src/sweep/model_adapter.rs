//! Model adapter: what the tests of this room play on.

use crate::Adapter;
use crate::gpu::{ModelEngine, ModelOptions, NodePolicy};

/// One whose only engine is a model.
///
/// # Panics
/// There is none.
pub(super) fn model_adapter() -> Adapter {
    let engine = Box::new(ModelEngine::new(ModelOptions::default()));
    Adapter::with_engines(vec![engine], NodePolicy::default()).expect("an adapter of a model")
}
