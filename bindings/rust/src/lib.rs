#![doc = include_str!("../README.md")]

mod engine;
mod error;
mod info;
mod memory;
mod models;
mod plan;
mod positions;

pub use engine::{ContentAttended, Engine, Geometry, Table};
pub use error::{Error, ErrorKind, Result};
pub use info::{Bias, Described, Field, Logits, PlanInfo, Rotate, Valid};
pub use models::{
    Bundled, Comparison, ContextOption, ContextPlan, Diagnosis, DoctorFinding, Evidence, Examined,
    Explanation, Extend, Finding, Group, Model, Models, Note, Profile, Translation, Warning,
};
pub use plan::{Attended, Attention, LearnedTable, Mask, Plan, Side};
pub use positions::Positions;
/// Schemes are JSON; `json!` writes them.
pub use serde_json::{Value, json};
