use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::info::Described;
use crate::memory::{Calls, Module, Source};
use crate::plan::{Attention, Plan};
use crate::positions::Positions;

static SOURCE: Source = Source::new(include_bytes!("../wasm/posenc.wasm"));

/// The model around a scheme. 0 stands for not known, and a scheme that needs a value says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Geometry {
    /// Channels of the embedding.
    pub width: i64,
    /// Query heads.
    pub heads: i64,
    /// Key and value heads; 0: as many as query heads.
    pub kv_heads: i64,
    /// Channels of a query or key head.
    pub head_dim: i64,
    /// Largest position + 1 to compile for; 0: as the model is constructed.
    pub length: i64,
    /// Rows of patches of a picture.
    pub grid_height: i64,
    /// Columns of patches of a picture.
    pub grid_width: i64,
}

/// Row-major numbers of a tensor that a scheme takes.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    /// As many as the shape says.
    pub values: &'a [f64],
    /// Extents, outermost first, at most four.
    pub shape: &'a [usize],
}

/// Attention by a scheme that reads the content, with its inside: `[heads][queries][keys]`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ContentAttended {
    /// `[heads][queries][head_dim]`.
    pub out: Vec<f64>,
    /// What the softmax takes; of a scheme without one the logarithms of the weights.
    pub logits: Vec<f64>,
    /// What each value is multiplied by.
    pub weights: Vec<f64>,
}

#[derive(Deserialize)]
struct Lists {
    schemes: Vec<Described>,
    scalings: Vec<Described>,
    content: Vec<Described>,
}

/// Schemes and what computes with them: an instance of posenc.wasm.
///
/// It may be shared by threads, as may its plans: a lock lets one call run at a time. For calls
/// side by side load one for each thread, which costs little: the module is compiled once in a
/// program.
pub struct Engine {
    module: Arc<Module>,
    lists: Lists,
    version: String,
}

impl Engine {
    /// An instance with a memory of its own.
    pub fn load() -> Result<Self> {
        Self::of(Module::load(&SOURCE)?)
    }
    fn of(module: Arc<Module>) -> Result<Self> {
        let (lists, version) = module.with(|calls| {
            Ok((calls.json("posenc_schemes_json", &[])?, calls.said("posenc_version")?))
        })?;
        Ok(Self { module, lists, version })
    }

    /// Of the library inside.
    pub fn version(&self) -> &str {
        &self.version
    }
    /// Every scheme that [`plan`](Self::plan) takes.
    pub fn schemes(&self) -> &[Described] {
        &self.lists.schemes
    }
    /// What may be the `scaling` of a RoPE.
    pub fn scalings(&self) -> &[Described] {
        &self.lists.scalings
    }
    /// Schemes that read the content, for [`attend`](Self::attend).
    pub fn content(&self) -> &[Described] {
        &self.lists.content
    }

    /// The plan of a scheme: `json!({"type": "rope", "scaling": {"type": "yarn", …}})`, or anything
    /// that serializes to it. Fields left out have their defaults.
    pub fn plan(&self, scheme: &impl Serialize, geometry: Geometry) -> Result<Plan> {
        let scheme = written(scheme)?;
        let kv_heads = if geometry.kv_heads == 0 { geometry.heads } else { geometry.kv_heads };
        Plan::new(&self.module, |calls| {
            let text = calls.text(&scheme)?;
            let size = calls.structure(
                "posenc_geometry",
                &[
                    ("width", &[geometry.width]),
                    ("heads", &[geometry.heads]),
                    ("kv_heads", &[kv_heads]),
                    ("head_dim", &[geometry.head_dim]),
                    ("length", &[geometry.length]),
                    ("grid_height", &[geometry.grid_height]),
                    ("grid_width", &[geometry.grid_width]),
                ],
            )?;
            calls.make("posenc_plan_from_scheme", &[text.into(), size.into()])
        })
    }

    /// Normal numbers 0, 1, … of a seed's sequence: those that the command draws.
    pub fn normals(&self, seed: u64, count: usize) -> Result<Vec<f64>> {
        self.module.with(|calls| {
            let out = calls.tensor(&[count], None)?;
            let args = [(seed as i64).into(), 0i64.into(), (count as i64).into(), out.at.into()];
            calls.call("posenc_normals", &args)?;
            calls.read(out)
        })
    }

    /// Attention by a scheme of [`content`](Self::content), with tensors by the names that the
    /// scheme gives them.
    pub fn attend(
        &self,
        scheme: &impl Serialize,
        tables: &[(&str, Table)],
        inputs: &Attention,
    ) -> Result<ContentAttended> {
        let scheme = written(scheme)?;
        self.module.with(|calls| {
            let text = calls.text(&scheme)?;
            let content = calls.make_held(
                "posenc_content_from_scheme",
                &[text.into()],
                "posenc_content_free",
            )?;
            for (name, table) in tables {
                let name = calls.text(name)?;
                let values = calls.tensor(table.shape, Some(table.values))?.view;
                let args = [content.into(), name.into(), values.into()];
                calls.call("posenc_content_set_table", &args)?;
            }
            let held = inputs.hold(calls)?;
            let weights = calls.tensor(&held.logits_shape, None)?;
            calls.call(
                "posenc_attend_content_reference",
                &[
                    content.into(),
                    0u32.into(),
                    held.given.into(),
                    held.out.view.into(),
                    held.logits.view.into(),
                    weights.view.into(),
                ],
            )?;
            Ok(ContentAttended {
                out: calls.read(held.out)?,
                logits: calls.read(held.logits)?,
                weights: calls.read(weights)?,
            })
        })
    }

    /// Of a row with padding: a token's position is the number of tokens before it.
    pub fn positions_of(&self, mask: &[bool]) -> Result<Positions> {
        let mask: Vec<u8> = mask.iter().map(|token| u8::from(*token)).collect();
        self.positions(|calls| {
            let bytes = calls.bytes(&mask)?;
            let extents = [1i64, mask.len() as i64, 0, 0].map(Into::into);
            let args = [&[bytes.into()], &extents[..]].concat();
            calls.make_held("posenc_positions_from_mask", &args, "posenc_positions_free")
        })
    }

    /// Of a picture's patches, row by row: `[row or column][patch]`.
    pub fn patches(&self, height: usize, width: usize) -> Result<Positions> {
        let args = [height as i64, width as i64, 1, 1].map(Into::into);
        self.positions(|calls| {
            calls.make_held("posenc_positions_patches", &args, "posenc_positions_free")
        })
    }

    fn positions(&self, make: impl FnOnce(&mut Calls) -> Result<u32>) -> Result<Positions> {
        self.module.with(|calls| {
            let made = make(calls)?;
            Positions::made(calls, made)
        })
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "Engine({})", self.version)
    }
}

fn written(scheme: &impl Serialize) -> Result<String> {
    serde_json::to_string(scheme).map_err(|why| Error::misuse(format!("the scheme: {why}")))
}
