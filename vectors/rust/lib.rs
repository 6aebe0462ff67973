//! Test vectors of transformers' positions: inputs, right answers, and the answers that known mistakes give.
//!
//! ```
//! use posenc_vectors::{judge, load, DType};
//! for vector in load("bias").iter().filter(|v| v.id == "slopes/4") {
//!     let slopes = vec![0.25, 0.0625, 0.015625, 0.00390625]; // the engine's
//!     let verdict = judge(vector, &[("slopes", slopes)], DType::Float32);
//!     assert!(verdict.right, "{verdict}");
//! }
//! ```
//!
//! README.md says how an answer is judged.

use serde_json::Value;
use std::fmt;
use std::sync::OnceLock;

const FILES: [(&str, &str); 11] = [
    ("added", include_str!("../added.json")),
    ("bias", include_str!("../bias.json")),
    ("cos_sin", include_str!("../cos_sin.json")),
    ("frequencies", include_str!("../frequencies.json")),
    ("mask", include_str!("../mask.json")),
    ("mistakes", include_str!("../mistakes.json")),
    ("model", include_str!("../model.json")),
    ("positions", include_str!("../positions.json")),
    ("rekey", include_str!("../rekey.json")),
    ("rotate", include_str!("../rotate.json")),
    ("scores", include_str!("../scores.json")),
];
const SIX_DIGITS: f64 = 1e-5; // wrong answers have six

/// The type that an engine computes in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DType {
    Float64,
    Float32,
    Float16,
    Bfloat16,
}

/// A test: `input` and `output` as the files have them.
pub struct Vector {
    pub operation: &'static str,
    pub id: String,
    pub input: &'static Value,
    pub output: &'static Value,
    test: &'static Value,
}

/// Whether an answer is right, and the mistakes that give it.
#[derive(Debug, PartialEq)]
pub struct Verdict {
    pub right: bool,
    pub shows: Vec<String>,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if self.right {
            return write!(f, "right");
        }
        if self.shows.is_empty() {
            return write!(f, "wrong, by no mistake that is known");
        }
        for name in &self.shows {
            let of = &file("mistakes")["mistakes"][name.as_str()];
            writeln!(f, "{name}: {}; cure: {}", of["title"].as_str().unwrap_or(""), of["cure"].as_str().unwrap_or(""))?;
        }
        Ok(())
    }
}

fn file(name: &str) -> &'static Value {
    static READ: OnceLock<Vec<Value>> = OnceLock::new();
    let all = READ.get_or_init(|| FILES.iter().map(|(_, text)| serde_json::from_str(text).expect("the files are JSON")).collect());
    let at = FILES.iter().position(|(known, _)| *known == name).unwrap_or_else(|| panic!("no operation {name}"));
    &all[at]
}

/// The tests of an operation: "rotate", "frequencies", "model" … Panics where there is no such operation.
pub fn load(operation: &str) -> Vec<Vector> {
    let document = file(operation);
    let operation = FILES.iter().find(|(known, _)| *known == operation).unwrap().0;
    let tests = document["tests"].as_array().expect("a list");
    tests.iter().map(|test| Vector { operation, id: test["id"].as_str().unwrap().into(), input: &test["input"], output: &test["output"], test }).collect()
}

/// Every number of a value, row-major; NaN for null.
pub fn flat(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(parts) => parts.iter().flat_map(flat).collect(),
        other => vec![other.as_f64().unwrap_or(f64::NAN)],
    }
}

fn close(got: &[f64], wanted: &[f64], absolute: f64, relative: f64) -> bool {
    got.len() == wanted.len() && got.iter().zip(wanted).all(|(g, w)| w.is_nan() || (g - w).abs() <= absolute + relative * w.abs())
}

type Named<'a> = (&'a str, Vec<f64>);

fn shown(test: &Value, got: &[Named], absolute: f64, relative: f64) -> Vec<String> {
    let right = |key: &str| flat(&test["output"][key]);
    let mut names = vec![];
    for (name, changed) in test["mistakes"].as_object().into_iter().flatten() {
        let wrong = |key: &str| changed.get(key).map_or_else(|| (right(key), 0.0), |value| (flat(value), SIX_DIGITS));
        let visible = got.iter().any(|(key, _)| changed.get(*key).is_some_and(|value| !close(&flat(value), &right(key), absolute, relative)));
        if visible
            && got.iter().all(|(key, values)| {
                let (wanted, slack) = wrong(key);
                close(values, &wanted, absolute, relative + slack)
            })
        {
            names.push(name.clone());
        }
    }
    for (name, bounds) in test["within"].as_object().into_iter().flatten() {
        let near = |(key, values): &Named| {
            let (bound, right) = (flat(&bounds[*key]), right(key));
            values.len() == right.len() && bound.len() == right.len() && (0..right.len()).all(|i| (values[i] - right[i]).abs() <= absolute + bound[i])
        };
        if !names.contains(name) && got.iter().all(near) {
            names.push(name.clone());
        }
    }
    names
}

/// Judges an answer: its outputs by name, row-major. Panics where none of them is asked for.
pub fn judge(vector: &Vector, answer: &[Named], dtype: DType) -> Verdict {
    let names = ["float64", "float32", "float16", "bfloat16"];
    let tolerance = &file(vector.operation)["tolerance"][names[dtype as usize]];
    let (absolute, relative) = (tolerance["absolute"].as_f64().unwrap(), tolerance["relative"].as_f64().unwrap());
    let got: Vec<Named> = answer.iter().filter(|(key, _)| vector.output.get(*key).is_some()).cloned().collect();
    assert!(!got.is_empty(), "an answer must have one of the outputs of {}/{}", vector.operation, vector.id);
    let wrong: Vec<&Named> = got.iter().filter(|(key, values)| !close(values, &flat(&vector.output[*key]), absolute, relative)).collect();
    if wrong.is_empty() {
        return Verdict { right: true, shows: vec![] };
    }
    let whole = shown(vector.test, &got, absolute, relative);
    if !whole.is_empty() || got.len() == 1 {
        return Verdict { right: false, shows: whole };
    }
    // One that changes another output too is not what made this one wrong.
    let alone = |name: &String, key: &str| vector.test["mistakes"][name.as_str()].as_object().map_or(true, |changed| changed.keys().all(|k| k == key));
    let apart: Vec<Vec<String>> = wrong
        .iter()
        .map(|part| shown(vector.test, std::slice::from_ref(part), absolute, relative).into_iter().filter(|name| alone(name, part.0)).collect())
        .collect();
    let all = apart.iter().all(|names| !names.is_empty());
    Verdict { right: false, shows: if all { apart.into_iter().map(|mut names| names.remove(0)).collect() } else { vec![] } }
}
