//! candle: candle_nn::rotary_emb, which turns halves (`rope`) or neighbours (`rope_i`) by tables of cos and sin.
use candle_core::{DType, Device, Result, Tensor};
use candle_nn::rotary_emb::{rope, rope_i};
use serde_json::{json, Value};
use std::io::{stdin, stdout, Write};

/// [token][head][channel] of the request as candle has it: [1][head][token][channel], float32.
fn heads(x: &[Vec<Vec<f32>>]) -> Result<Tensor> {
    let (tokens, heads, channels) = (x.len(), x[0].len(), x[0][0].len());
    let flat: Vec<f32> = x.iter().flatten().flatten().copied().collect();
    Tensor::from_vec(flat, (1, tokens, heads, channels), &Device::Cpu)?.transpose(1, 2)?.contiguous()
}

/// cos and sin [token][pair] of angles in double, times the factor.
fn tables(input: &Value) -> Result<(Tensor, Tensor)> {
    let numbers = |of: &Value| of.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect::<Vec<_>>();
    let (positions, frequencies) = (numbers(&input["positions"]), numbers(&input["inv_freq"]));
    let angles: Vec<f64> = positions.iter().flat_map(|p| frequencies.iter().map(move |f| p * f)).collect();
    let angles = Tensor::from_vec(angles, (positions.len(), frequencies.len()), &Device::Cpu)?;
    let factor = input["attention_factor"].as_f64().unwrap();
    let table = |of: Tensor| (of * factor)?.to_dtype(DType::F32);
    Ok((table(angles.cos()?)?, table(angles.sin()?)?))
}

fn rotate(input: &Value, name: &str) -> Result<Value> {
    let x: Vec<Vec<Vec<f32>>> = serde_json::from_value(input[name].clone()).unwrap();
    let x = heads(&x)?;
    let (first, part) = (input["first_dim"].as_u64().unwrap() as usize, input["rotary_dim"].as_u64().unwrap() as usize);
    let (cos, sin) = tables(input)?;
    let slice = x.narrow(3, first, part)?.contiguous()?;
    let turned = if input["pairing"] == "halves" { rope(&slice, &cos, &sin)? } else { rope_i(&slice, &cos, &sin)? };
    let rest = x.dim(3)? - first - part;
    let whole = Tensor::cat(&[x.narrow(3, 0, first)?, turned, x.narrow(3, first + part, rest)?], 3)?;
    Ok(json!(whole.squeeze(0)?.transpose(0, 1)?.contiguous()?.to_vec3::<f32>()?))
}

fn answered(request: &Value) -> Value {
    let input = &request["input"];
    match request["operation"].as_str().unwrap() {
        "hello" => json!({"name": "candle-nn", "version": env!("CANDLE_VERSION"), "dtype": "float32"}),
        "rotate" if input.get("axis_of_pair").is_some() => json!({"unsupported": "one axis alone"}),
        "rotate" => match (rotate(input, "q"), rotate(input, "k")) {
            (Ok(q), Ok(k)) => json!({"output": {"q": q, "k": k}}),
            (Err(error), _) | (_, Err(error)) => json!({"error": error.to_string()}),
        },
        _ => json!({"unsupported": "candle-nn has rotations by given tables alone"}),
    }
}

fn main() {
    for line in stdin().lines() {
        let request: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let mut answer = answered(&request);
        answer["id"] = request["id"].clone();
        println!("{answer}");
        stdout().flush().unwrap();
    }
}
