use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::info::Valid;
use crate::memory::{Arg, Module, Source};
use crate::plan::Plan;

static SOURCE: Source = Source::new(include_bytes!("../wasm/posenc-models.wasm"));

/// The readers of models' files and the doctor: an instance of posenc-models.wasm.
///
/// It may be shared by threads, as may its models: a lock lets one call run at a time.
pub struct Models {
    module: Arc<Module>,
}

/// A real configuration that travels with the library.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Bundled {
    /// For [`Models::open`].
    pub name: String,
    /// Why it is there.
    pub about: String,
    /// `published` or `reconstructed`.
    pub origin: String,
    /// From what.
    pub source: String,
}

/// What is known of a version of an engine.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Profile {
    /// `vllm`, `transformers`, …
    pub name: String,
    /// In words.
    pub title: String,
    /// Of the engine.
    pub version: String,
    /// Where it was read.
    pub source: String,
}

/// Something that the doctor looks at.
#[derive(Clone, Copy, Debug)]
pub enum Evidence<'a> {
    /// A bundled name, or a command line of an engine.
    Words(&'a str),
    /// A config.json, params.json, GGUF, log, Modelfile, trainer's YAML …, told apart by its
    /// content.
    File {
        /// What the answer calls it.
        name: &'a str,
        /// What it holds.
        bytes: &'a [u8],
    },
}
impl<'a> From<&'a str> for Evidence<'a> {
    fn from(words: &'a str) -> Self {
        Self::Words(words)
    }
}

/// What differs, or deserves a look.
#[derive(Clone, Debug, Default, Deserialize)]
#[non_exhaustive]
pub struct Finding {
    /// One of docs/codes.md or docs/warnings.md.
    pub code: String,
    /// `error`, `warning` or `note`.
    pub severity: String,
    /// `text`, `encoder`, `decoder`, `vision` or `audio`.
    pub stack: Option<String>,
    /// The first layer that is concerned.
    pub layer: Option<i64>,
    /// All of them.
    #[serde(default)]
    pub layers: Vec<i64>,
    /// The pair of channels.
    pub pair: Option<i64>,
    /// The first position at which it shows.
    pub position: Option<i64>,
    /// What should be.
    pub expected: String,
    /// What is.
    pub found: String,
    /// A sentence.
    pub message: String,
    /// What to do.
    pub cure: String,
    /// Engines that are concerned.
    #[serde(default)]
    pub engines: Vec<String>,
    /// Of a log.
    pub line: Option<i64>,
}

/// Where two readings of a model differ.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Comparison {
    /// Nothing differs.
    pub equal: bool,
    /// What differs.
    pub findings: Vec<Finding>,
}

/// The doctor's judgement (docs/doctor.md).
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Diagnosis {
    /// What was looked at, and as what.
    pub evidence: Vec<Examined>,
    /// One sentence.
    pub verdict: String,
    /// Ordered by what they do to a text.
    pub findings: Vec<DoctorFinding>,
    /// The command to run next.
    pub next: String,
    /// All of it, as `posenc doctor --json` prints it.
    #[serde(skip)]
    pub json: Value,
}

/// A piece of evidence as the doctor took it.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Examined {
    /// As it was told.
    pub name: String,
    /// `model`, `command`, `log`, `modelfile`, `training`, `inv_freq`, `versions` or `unusable`.
    pub kind: String,
    /// How it was taken, or why it could not be.
    #[serde(rename = "as")]
    pub taken_as: String,
}

/// A finding of the doctor.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct DoctorFinding {
    /// As of [`Finding`].
    pub code: String,
    /// As of [`Finding`].
    pub severity: String,
    /// That it is about.
    pub engine: Option<String>,
    /// Of the engine.
    pub version: Option<String>,
    /// In which evidence.
    #[serde(rename = "where")]
    pub place: String,
    /// What is wrong.
    pub what: String,
    /// What it does to a text.
    pub effect: String,
    /// What to do.
    pub cure: String,
    /// What it rests on.
    pub sure: String,
    /// With layers, pair and position.
    pub finding: Finding,
}

/// What an engine loses or changes.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Note {
    /// `lost`, `approximated`, `defaulted`, `fixed` or `rounded`.
    pub kind: String,
    /// A sentence.
    pub what: String,
}

/// A rotation in an engine's words.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Translation {
    /// Whose words they are.
    pub engine: String,
    /// Of the engine.
    pub version: String,
    /// An object: keys of a configuration or a GGUF; or a string: a command line.
    pub target: Value,
    /// What is lost.
    pub notes: Vec<Note>,
    /// That it was compared for.
    pub length: i64,
    /// Radians, of what the engine makes of the target beside the model; nothing: it refuses it.
    pub largest_angle_difference: Option<f64>,
    /// Of the factor on cos and sin.
    pub amplitude_difference: Option<f64>,
}

/// A longer context.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct ContextPlan {
    /// Tokens that are wanted.
    pub to: i64,
    /// That training has shown; nothing: nobody says, and it does not matter.
    pub trained: Option<i64>,
    /// The name of an option, or `longer_table`.
    pub recommended: String,
    /// Why.
    pub reason: String,
    /// Ways to have it.
    pub options: Vec<ContextOption>,
    /// The recommended option in the engine's words.
    pub flags: Value,
    /// What that engine does besides.
    pub remarks: Vec<String>,
    /// What only measuring tells.
    pub unknown: Vec<String>,
    /// All of it, as `posenc extend --json` prints it.
    #[serde(skip)]
    pub json: Value,
}

/// A way to a longer context.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct ContextOption {
    /// `as_is`, `linear`, `yarn`, …
    pub name: String,
    /// Why it cannot be had.
    pub unavailable: Option<String>,
    /// It makes no sense without.
    #[serde(default)]
    pub needs_training: bool,
    /// For [`Engine::plan`](crate::Engine::plan).
    #[serde(default)]
    pub scheme: Value,
    /// Radians per position at that length.
    #[serde(default)]
    pub frequencies: Vec<f64>,
    /// Pairs that meet angles which training has not shown.
    #[serde(default)]
    pub unseen: Vec<i64>,
}

/// How [`Model::extend`] is asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extend<'a> {
    /// Nothing: transformers.
    pub engine: Option<&'a str>,
    /// Tokens that training has shown; 0: as the file tells.
    pub trained: i64,
    /// The weights will be trained at that length.
    pub training: bool,
}

/// What a model's files say about position (docs/json.md).
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Explanation {
    /// Its name.
    pub model: String,
    /// `model_type` as the file spells it.
    pub family: String,
    /// Longest length the files promise.
    pub context: Option<i64>,
    /// The same before any scaling.
    pub trained_context: Option<i64>,
    /// Sentences about the model as a whole.
    pub words: Vec<String>,
    /// Layers that treat position alike.
    pub groups: Vec<Group>,
    /// For people; codes are stable.
    pub warnings: Vec<Warning>,
    /// All of it, as `posenc explain --json` prints it.
    #[serde(skip)]
    pub json: Value,
}

/// Layers that treat position alike.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Group {
    /// `text`, `encoder`, `decoder`, `vision` or `audio`.
    pub stack: String,
    /// Their numbers.
    pub layers: Vec<i64>,
    /// The main scheme, for [`Engine::plan`](crate::Engine::plan).
    pub scheme: Value,
    /// What the schemes come down to.
    pub plan: Value,
    /// Lengths for which the plan holds.
    pub valid: Option<Valid>,
    /// The group in one line.
    pub heading: String,
    /// And in sentences.
    pub words: Vec<String>,
}

/// A warning of an explanation.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Warning {
    /// One of docs/warnings.md.
    pub code: String,
    /// A sentence.
    pub message: String,
}

#[derive(Deserialize)]
struct Findings {
    findings: Vec<Finding>,
}

impl Models {
    /// An instance with a memory of its own.
    pub fn load() -> Result<Self> {
        Ok(Self { module: Module::load(&SOURCE)? })
    }

    /// A config.json, a params.json or (the front of) a GGUF, told apart by their content. The name
    /// is for messages.
    pub fn read(&self, bytes: &[u8], name: &str) -> Result<Model> {
        let handle = self.module.with(|calls| {
            let at = calls.bytes(bytes)?;
            let size = (bytes.len() as u32).into();
            let name = calls.text(name)?;
            calls.make("posenc_model_read", &[at.into(), size, name.into()])
        })?;
        Ok(Model { module: Arc::clone(&self.module), handle })
    }

    /// One of [`bundled`](Self::bundled).
    pub fn open(&self, name: &str) -> Result<Model> {
        let handle = self.module.with(|calls| {
            let name = calls.text(name)?;
            calls.make("posenc_model_open", &[name.into()])
        })?;
        Ok(Model { module: Arc::clone(&self.module), handle })
    }

    /// Real configurations that travel with the library.
    pub fn bundled(&self) -> Result<Vec<Bundled>> {
        self.module.with(|calls| calls.json("posenc_models_json", &[]))
    }

    /// The profiles of engines, the newest version of each first.
    pub fn engines(&self) -> Result<Vec<Profile>> {
        self.module.with(|calls| calls.json("posenc_engines_json", &[]))
    }

    /// What is wrong with position. The first model is what should run; all else is a run of it.
    /// engines (`["vllm", "transformers@5.12"]`): beside those of the evidence; length: tokens that
    /// it is to run for, 0: as the evidence says.
    pub fn doctor(
        &self,
        evidence: &[Evidence],
        engines: &[&str],
        length: i64,
    ) -> Result<Diagnosis> {
        let json: Value = self.module.with(|calls| {
            let doctor = calls.make_held("posenc_doctor_new", &[], "posenc_doctor_free")?;
            for one in evidence {
                let args = match one {
                    Evidence::Words(words) => [calls.text(words)?, 0, 0],
                    Evidence::File { name, bytes } => {
                        [calls.text(name)?, calls.bytes(bytes)?, bytes.len() as u32]
                    }
                };
                let args = [&[doctor.into()], &args.map(Arg::from)[..]].concat();
                calls.call("posenc_doctor_tell", &args)?;
            }
            let engines = calls.text(&engines.join(","))?;
            calls.json("posenc_doctor_json", &[doctor.into(), engines.into(), length.into()])
        })?;
        let made = Diagnosis::deserialize(&json).map_err(Error::module)?;
        Ok(Diagnosis { json, ..made })
    }
}

impl std::fmt::Debug for Models {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("Models")
    }
}

/// What a model's files say about position. Every length: positions to look at, 0: the model's
/// context. An engine is `vllm`, or `transformers@4` for that version.
pub struct Model {
    module: Arc<Module>,
    handle: u32,
}

impl Model {
    fn said<T: DeserializeOwned>(&self, verb: &'static str, args: &[Arg]) -> Result<T> {
        self.module.with(|calls| calls.json(verb, &[&[self.handle.into()], args].concat()))
    }

    fn of_engine<T: DeserializeOwned>(
        &self,
        verb: &'static str,
        engine: Option<&str>,
        length: i64,
    ) -> Result<T> {
        self.module.with(|calls| {
            let engine = calls.optional_text(engine)?;
            calls.json(verb, &[self.handle.into(), engine.into(), length.into()])
        })
    }

    /// What `posenc explain --json` prints, for positions 0 to length − 1.
    pub fn explain(&self, length: i64) -> Result<Explanation> {
        let json: Value =
            self.said("posenc_model_explain_json", &[length.into(), (-1i64).into()])?;
        let made = Explanation::deserialize(&json).map_err(Error::module)?;
        Ok(Explanation { json, ..made })
    }

    /// The plan of a layer of the text stack, compiled for a length.
    pub fn plan(&self, layer: i64, length: i64) -> Result<Plan> {
        self.plan_of("text", layer, length)
    }

    /// The plan of a layer of `text`, `encoder`, `decoder` or `vision`.
    pub fn plan_of(&self, stack: &str, layer: i64, length: i64) -> Result<Plan> {
        Plan::new(&self.module, |calls| {
            let stack = calls.text(stack)?;
            let group = calls.longs(&[0])?;
            let args = [self.handle.into(), stack.into(), layer.into(), group.into()];
            calls.call("posenc_model_find_group", &args)?;
            let group = calls.read_longs(group, 1)?[0];
            let args = [self.handle.into(), group.into(), length.into(), 0u32.into()];
            calls.make("posenc_model_plan", &args)
        })
    }

    /// Where another model of the same [`Models`] treats position differently.
    pub fn diff(&self, found: &Model, length: i64) -> Result<Comparison> {
        if !Arc::ptr_eq(&self.module, &found.module) {
            return Err(Error::misuse("diff: both models must be of the same Models"));
        }
        self.said("posenc_model_diff_json", &[found.handle.into(), length.into()])
    }

    /// What a command line of llama.cpp, vLLM, SGLang or another engine makes of it. length 0: what
    /// the line asks for.
    pub fn diff_command(&self, command: &str, length: i64) -> Result<Comparison> {
        self.of_engine("posenc_model_command_json", Some(command), length)
    }

    /// What an engine printed, beside it.
    pub fn diff_log(&self, log: &[u8], length: i64) -> Result<Comparison> {
        self.module.with(|calls| {
            let at = calls.bytes(log)?;
            let size = (log.len() as u32).into();
            let args = [self.handle.into(), at.into(), size, length.into()];
            calls.json("posenc_model_log_json", &args)
        })
    }

    /// What an engine makes of it: `refused`, `notes`, `findings` … of `posenc diff --engines
    /// --json`.
    pub fn read_by(&self, engine: &str, length: i64) -> Result<Value> {
        self.of_engine("posenc_model_engine_json", Some(engine), length)
    }

    /// What deserves a look. engine: that it is for, whose differences are then errors.
    pub fn lint(&self, engine: Option<&str>, length: i64) -> Result<Vec<Finding>> {
        let made: Findings = self.of_engine("posenc_model_lint_json", engine, length)?;
        Ok(made.findings)
    }

    /// Its rotation in an engine's words.
    pub fn translate(&self, engine: &str, length: i64) -> Result<Translation> {
        self.of_engine("posenc_model_translate_json", Some(engine), length)
    }

    /// A longer context: options, and which one is recommended.
    pub fn extend(&self, to: i64, how: Extend) -> Result<ContextPlan> {
        let json: Value = self.module.with(|calls| {
            let engine = calls.optional_text(how.engine)?;
            calls.json(
                "posenc_model_extend_json",
                &[
                    self.handle.into(),
                    to.into(),
                    engine.into(),
                    how.trained.into(),
                    u32::from(how.training).into(),
                ],
            )
        })?;
        let made = ContextPlan::deserialize(&json).map_err(Error::module)?;
        Ok(ContextPlan { json, ..made })
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.module.release("posenc_model_free", self.handle);
    }
}

impl std::fmt::Debug for Model {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("Model")
    }
}
