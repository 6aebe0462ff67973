use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use crate::engine::Table;
use crate::error::{Error, Result};
use crate::info::PlanInfo;
use crate::memory::{Arg, Calls, Module, Tensor};
use crate::positions::Positions;

/// xPos grows queries and shrinks keys; values only rotate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Side {
    /// Of queries.
    #[default]
    Query = 0,
    /// Of keys.
    Key = 1,
    /// Of values.
    Value = 2,
}

/// What a plan may have learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LearnedTable {
    /// Vectors added to the embedding, `[rows][width]`.
    Add = 0,
    /// Biases, `[heads][rows]`.
    Bias = 1,
    /// Vectors by distance that meet keys, `[rows][head_dim]` or `[heads][rows][head_dim]`.
    RelativeQuery = 2,
    /// Those that meet queries.
    RelativeKey = 3,
    /// Those added to values.
    RelativeValue = 4,
    /// `[2][heads]`: s, then b; queries at p are multiplied by s·ln(p + 1) + b.
    Temperature = 5,
}

/// Which keys a query sees.
#[derive(Clone, Debug)]
pub struct Mask {
    /// Hides keys behind the query, as is the default.
    pub causal: bool,
    /// Hides keys so far away or further; 0: none.
    pub window: i64,
    /// `[key]`, false hides one; empty: none hidden.
    pub keep: Vec<bool>,
}
impl Default for Mask {
    fn default() -> Self {
        Self { causal: true, window: 0, keep: Vec::new() }
    }
}

/// What attention takes: q `[heads][queries][head_dim]`, k and v `[kv_heads][keys][head_dim]`,
/// unrotated, of as many heads as q or fewer.
#[derive(Clone, Debug)]
pub struct Attention<'a> {
    /// Queries.
    pub q: &'a [f64],
    /// Keys.
    pub k: &'a [f64],
    /// Values.
    pub v: &'a [f64],
    /// Of q.
    pub heads: usize,
    /// Of q, k and v.
    pub head_dim: usize,
    /// Where the queries stand.
    pub queries: Positions,
    /// Where the keys stand; nothing: where the queries do.
    pub keys: Option<Positions>,
    /// Causal by default.
    pub mask: Mask,
}

impl<'a> Attention<'a> {
    /// Causal self-attention; members may be changed then.
    pub fn new(
        [q, k, v]: [&'a [f64]; 3],
        heads: usize,
        head_dim: usize,
        positions: impl Into<Positions>,
    ) -> Self {
        let (queries, mask) = (positions.into(), Mask::default());
        Self { q, k, v, heads, head_dim, queries, keys: None, mask }
    }

    pub(crate) fn hold(&self, calls: &mut Calls) -> Result<HeldAttention> {
        let keys = self.keys.as_ref().unwrap_or(&self.queries);
        let (rows, columns, dim) = (self.queries.count(), keys.count(), self.head_dim);
        let kv_heads = match self.k.len().checked_div(columns * dim) {
            None | Some(0) => self.heads,
            Some(heads) => heads,
        };
        let logits_shape = [1, self.heads, rows, columns];
        let q = calls.tensor(&[1, self.heads, rows, dim], Some(self.q))?;
        let k = calls.tensor(&[1, kv_heads, columns, dim], Some(self.k))?;
        let v = calls.tensor(&[1, kv_heads, columns, dim], Some(self.v))?;
        let out = calls.tensor(&[1, self.heads, rows, dim], None)?;
        let logits = calls.tensor(&logits_shape, None)?;
        let of_queries = self.queries.hold(calls)?;
        let of_keys = keys.hold(calls)?;
        let keep = match self.mask.keep.len() {
            0 => 0,
            given if given != columns => {
                return Err(Error::misuse(format!("keep must say of {columns} keys, got {given}")));
            }
            _ => {
                calls.bytes(&self.mask.keep.iter().map(|key| u8::from(*key)).collect::<Vec<_>>())?
            }
        };
        let mask = calls.structure(
            "posenc_mask",
            &[
                ("causal", &[self.mask.causal.into()]),
                ("window", &[self.mask.window]),
                ("keep", &[keep.into()]),
            ],
        )?;
        let given = calls.structure(
            "posenc_attention",
            &[
                ("q", &[q.view.into()]),
                ("k", &[k.view.into()]),
                ("v", &[v.view.into()]),
                ("queries", &[of_queries.into()]),
                ("keys", &[of_keys.into()]),
                ("mask", &[mask.into()]),
            ],
        )?;
        Ok(HeldAttention { given, out, logits, logits_shape })
    }
}

pub(crate) struct HeldAttention {
    pub(crate) given: u32,
    pub(crate) out: Tensor,
    pub(crate) logits: Tensor,
    pub(crate) logits_shape: [usize; 4],
}

/// Attention, with its inside.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Attended {
    /// `[heads][queries][head_dim]`.
    pub out: Vec<f64>,
    /// `[heads][queries][keys]`, −∞ where hidden.
    pub logits: Vec<f64>,
}

/// A scheme as numbers, which act on arrays: row-major, in double. It keeps its module, and may be
/// shared by threads.
pub struct Plan {
    module: Arc<Module>,
    handle: u32,
    info: PlanInfo,
}

impl Plan {
    pub(crate) fn new(
        module: &Arc<Module>,
        make: impl FnOnce(&mut Calls) -> Result<u32>,
    ) -> Result<Self> {
        let handle = module.with(make)?;
        let mut made = Self { module: Arc::clone(module), handle, info: PlanInfo::default() };
        made.info = made.described()?;
        Ok(made)
    }

    fn described(&self) -> Result<PlanInfo> {
        let json: Value =
            self.module.with(|calls| calls.json("posenc_plan_json", &[self.handle.into()]))?;
        let info = PlanInfo::deserialize(&json).map_err(Error::module)?;
        Ok(PlanInfo { json, ..info })
    }

    /// What it computes with: frequencies, amplitude, slopes, lengths.
    pub fn info(&self) -> &PlanInfo {
        &self.info
    }

    /// Learned numbers, row-major.
    pub fn set_table(&mut self, which: LearnedTable, table: Table) -> Result<()> {
        self.module.with(|calls| {
            let values = calls.tensor(table.shape, Some(table.values))?.view;
            let args = [self.handle.into(), (which as u32).into(), values.into()];
            calls.call("posenc_plan_set_table", &args)
        })?;
        self.info = self.described()?;
        Ok(())
    }

    /// x `[tokens][head_dim]` or `[heads][tokens][head_dim]`, rotated by the tokens' positions. Of
    /// PoPE heads become wider by a channel for each pair.
    pub fn rotate(
        &self,
        x: &[f64],
        head_dim: usize,
        at: impl Into<Positions>,
        side: Side,
    ) -> Result<Vec<f64>> {
        let wider = match &self.info.rotate {
            Some(rotate) if rotate.polar => rotate.rotary_dim / 2,
            _ => 0,
        };
        self.rotated("posenc_rotate", x, head_dim, wider, at.into(), side)
    }

    /// The rotation undone.
    pub fn rotate_back(
        &self,
        x: &[f64],
        head_dim: usize,
        at: impl Into<Positions>,
        side: Side,
    ) -> Result<Vec<f64>> {
        self.rotated("posenc_rotate_inverse", x, head_dim, 0, at.into(), side)
    }

    fn rotated(
        &self,
        verb: &'static str,
        x: &[f64],
        head_dim: usize,
        wider: usize,
        at: Positions,
        side: Side,
    ) -> Result<Vec<f64>> {
        let tokens = at.count();
        let heads = x.len().checked_div(tokens * head_dim).unwrap_or(1).max(1);
        self.module.with(|calls| {
            let given = calls.tensor(&[heads, tokens, head_dim], Some(x))?;
            let out = match wider {
                0 => given,
                _ => calls.tensor(&[heads, tokens, head_dim + wider], None)?,
            };
            let at = at.hold(calls)?;
            calls.call(
                verb,
                &[
                    self.handle.into(),
                    given.view.into(),
                    at.into(),
                    (side as u32).into(),
                    out.view.into(),
                    1u32.into(),
                ],
            )?;
            calls.read(out)
        })
    }

    /// The angles of [`rotate`](Self::rotate) in radians, `[tokens][pairs]`, of the first head.
    pub fn angles(&self, at: impl Into<Positions>) -> Result<Vec<f64>> {
        let pairs = self.info.rotate.as_ref().map_or(0, |rotate| rotate.rotary_dim / 2);
        let heads = self.info.rotate.as_ref().map_or(1, |rotate| rotate.heads);
        let at = at.into();
        let shape = [1, heads, at.count(), pairs];
        let mut angles = self.filled("posenc_rotation_angles", &shape, None, &[&at])?;
        angles.truncate(at.count() * pairs);
        Ok(angles)
    }

    /// What is added to the embedding, `[tokens][width]`.
    pub fn vectors(&self, at: impl Into<Positions>, width: usize) -> Result<Vec<f64>> {
        let at = at.into();
        self.filled("posenc_position_vectors", &[1, at.count(), width], None, &[&at])
    }

    /// Embeddings `[tokens][width]` with what the plan adds.
    pub fn add(&self, x: &[f64], width: usize, at: impl Into<Positions>) -> Result<Vec<f64>> {
        let at = at.into();
        self.filled("posenc_add", &[1, at.count(), width], Some(x), &[&at])
    }

    /// What is added to the logits, `[heads][queries][keys]`.
    pub fn bias(
        &self,
        heads: usize,
        queries: impl Into<Positions>,
        keys: impl Into<Positions>,
    ) -> Result<Vec<f64>> {
        let (queries, keys) = (queries.into(), keys.into());
        let shape = [heads, queries.count(), keys.count()];
        self.filled("posenc_bias", &shape, None, &[&queries, &keys])
    }

    // A function that takes the plan, perhaps a tensor that it changes in place, positions, and a
    // tensor to write.
    fn filled(
        &self,
        verb: &'static str,
        shape: &[usize],
        x: Option<&[f64]>,
        positions: &[&Positions],
    ) -> Result<Vec<f64>> {
        self.module.with(|calls| {
            let out = calls.tensor(shape, x)?;
            let mut args = vec![Arg::from(self.handle)];
            args.extend(x.map(|_| Arg::from(out.view)));
            for at in positions {
                args.push(at.hold(calls)?.into());
            }
            args.extend([out.view, 1].map(Arg::from));
            calls.call(verb, &args)?;
            calls.read(out)
        })
    }

    /// softmax(logits) v, and every logit.
    pub fn attend(&self, inputs: &Attention) -> Result<Attended> {
        self.module.with(|calls| {
            let held = inputs.hold(calls)?;
            calls.call(
                "posenc_attend_reference",
                &[
                    self.handle.into(),
                    held.given.into(),
                    held.out.view.into(),
                    held.logits.view.into(),
                ],
            )?;
            Ok(Attended { out: calls.read(held.out)?, logits: calls.read(held.logits)? })
        })
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        self.module.release("posenc_plan_free", self.handle);
    }
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "Plan({})", self.info.json)
    }
}
