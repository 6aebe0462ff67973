//! What the library says of schemes and plans, out of its JSON (docs/json.md).

use serde::Deserialize;
use serde_json::Value;

/// A scheme, a scaling of RoPE or a scheme of content, with the fields that it takes.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Described {
    /// What `type` may be, besides the aliases.
    pub name: String,
    /// Other spellings of the name.
    pub aliases: Vec<String>,
    /// In words.
    pub title: String,
    /// In text.
    pub formula: String,
    /// An arXiv number, or `""`.
    pub paper: String,
    /// In declared order.
    pub fields: Vec<Field>,
}

/// A field of a scheme.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Field {
    /// Hugging Face's where it has the field.
    pub name: String,
    /// Other spellings.
    pub aliases: Vec<String>,
    /// `boolean`, `integer`, `number`, `choice`, `numbers` or `integers`.
    pub kind: String,
    /// One line.
    pub doc: String,
    /// `tokens`, `rad/token`, … or `""`.
    pub unit: String,
    /// No number is below.
    pub least: Option<f64>,
    /// No number is above.
    pub most: Option<f64>,
    /// `least` itself is not allowed.
    pub open: bool,
    /// The words of a `choice`.
    pub choices: Vec<String>,
    /// It has no default that one could mean.
    pub required: bool,
    /// It may be null: left to the scheme's rule.
    pub optional: bool,
    /// Its value where it is not given.
    pub default: Value,
}

/// What a scheme comes down to: the parts that programs ask for most, and all of it as JSON.
#[derive(Clone, Debug, Default, Deserialize)]
#[non_exhaustive]
pub struct PlanInfo {
    /// Of queries and keys.
    pub rotate: Option<Rotate>,
    /// On the logits.
    pub bias: Option<Bias>,
    /// How logits are scaled.
    #[serde(default)]
    pub logits: Logits,
    /// Lengths for which the plan holds; nothing: any length.
    pub valid: Option<Valid>,
    /// Every part and member, as docs/json.md has them.
    #[serde(skip)]
    pub json: Value,
}

/// The rotation of a plan.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Rotate {
    /// `halves`: channels (r, r + rotary_dim/2); `interleaved`: (2r, 2r + 1).
    pub pairing: String,
    /// First channel of the head that rotates.
    pub first_dim: usize,
    /// Channels that rotate.
    pub rotary_dim: usize,
    /// Heads with frequencies of their own; 1: all share them.
    pub heads: usize,
    /// 1 for text, 2 or 3 for pictures and videos.
    pub axes: usize,
    /// Radians per position, a row for each axis of each head.
    pub frequencies: Vec<Vec<f64>>,
    /// On cos and sin of both queries and keys: logits grow by its square.
    pub amplitude: f64,
    /// Each of rotary_dim/2 channels makes a pair before it rotates (PoPE), so that heads become
    /// wider.
    pub polar: bool,
}

/// The bias of a plan.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Bias {
    /// `slope` or `table`.
    pub kind: String,
    /// −slope·distance is added to a head's logits.
    pub slopes: Option<Vec<f64>>,
    /// `[head or 1][row]`; nothing where they are learned.
    pub values: Option<Vec<Vec<f64>>>,
}

/// z = q·k · multiplier/√head_dim · temperature; with a softcap c other than 0 the logit is
/// c·tanh(z/c), else z.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Logits {
    /// Beside 1/√head_dim.
    pub multiplier: f64,
    /// c of c·tanh(z/c); 0: none.
    pub softcap: f64,
}
impl Default for Logits {
    fn default() -> Self {
        Self { multiplier: 1.0, softcap: 0.0 }
    }
}

/// Lengths, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Valid {
    /// Shortest.
    pub from: i64,
    /// Longest; nothing: no end.
    pub to: Option<i64>,
}
