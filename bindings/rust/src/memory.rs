//! The functions of `posenc/c.h` as Rust calls: strings, numbers and structs go in as copies,
//! errors come out as `Error`. The module itself says how the compiler laid out the structs of c.h
//! (cmake/wasm_layout.sh).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use wasmi::{Func, Instance, Memory, Store, TypedFunc, Val};

use crate::error::{Error, ErrorKind, Result, in_our_words};

#[derive(Deserialize)]
struct Struct {
    size: usize,
    members: HashMap<String, Member>,
}

// [offset, kind] of a member, or [offset, kind, count] of an array; a pointer is a uint32.
#[derive(Deserialize)]
#[serde(untagged)]
enum Member {
    One(usize, String),
    Array(usize, String, #[allow(dead_code, reason = "the caller knows it")] usize),
}

/// An argument as WebAssembly takes it. `Long` is an int64_t; all else has four bytes.
#[derive(Clone, Copy)]
pub(crate) enum Arg {
    Int(u32),
    Long(i64),
}
impl From<u32> for Arg {
    fn from(value: u32) -> Self {
        Arg::Int(value)
    }
}
impl From<i64> for Arg {
    fn from(value: i64) -> Self {
        Arg::Long(value)
    }
}

/// What a module is compiled from, once in a program.
pub(crate) struct Source {
    wasm: &'static [u8],
    compiled: OnceLock<std::result::Result<wasmi::Module, Error>>,
}

impl Source {
    pub(crate) const fn new(wasm: &'static [u8]) -> Self {
        Self { wasm, compiled: OnceLock::new() }
    }
    fn compiled(&self) -> Result<&wasmi::Module> {
        self.compiled
            .get_or_init(|| {
                wasmi::Module::new(&wasmi::Engine::default(), self.wasm).map_err(Error::module)
            })
            .as_ref()
            .map_err(Clone::clone)
    }
}

struct Running {
    store: Store<()>,
    instance: Instance,
    memory: Memory,
    malloc: TypedFunc<u32, u32>,
    free: TypedFunc<u32, ()>,
    functions: HashMap<&'static str, Func>,
    layout: Arc<HashMap<String, Struct>>,
    slot: u32, // where functions hand out pointers
    trapped: Option<Error>,
}

/// An instance with a memory of its own. One call runs at a time: a lock sees to it.
pub(crate) struct Module(Mutex<Running>);

impl Module {
    pub(crate) fn load(source: &Source) -> Result<Arc<Self>> {
        let module = source.compiled()?;
        let layout = module
            .custom_sections()
            .find(|section| section.name() == "posenc.layout")
            .ok_or_else(|| Error::module("it does not tell its layout"))?;
        let layout = Arc::new(serde_json::from_slice(layout.data()).map_err(Error::module)?);
        let mut store = Store::new(module.engine(), ());
        let instance = Instance::new(&mut store, module, &[]).map_err(Error::module)?;
        let typed = |name| instance.get_typed_func(&store, name).map_err(Error::module);
        let (malloc, free) =
            (typed("malloc")?, instance.get_typed_func(&store, "free").map_err(Error::module)?);
        let memory = instance
            .get_memory(&store, "memory")
            .ok_or_else(|| Error::module("it has no memory"))?;
        let start =
            instance.get_typed_func::<(), ()>(&store, "_initialize").map_err(Error::module)?;
        start.call(&mut store, ()).map_err(Error::module)?;
        let slot = malloc.call(&mut store, 64).map_err(Error::module)?;
        Ok(Arc::new(Self(Mutex::new(Running {
            store,
            instance,
            memory,
            malloc,
            free,
            functions: HashMap::new(),
            layout,
            slot,
            trapped: None,
        }))))
    }

    /// Some calls in a row, and what they took is freed.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Calls) -> Result<T>) -> Result<T> {
        // A panic leaves the module's memory as it was between two calls.
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut Calls { running: &mut running, held: Vec::new() })
    }

    pub(crate) fn release(&self, verb: &'static str, handle: u32) {
        // A module that trapped needs no order any more.
        let _ = self.with(|calls| calls.void(verb, handle));
    }
}

pub(crate) struct Calls<'a> {
    running: &'a mut Running,
    held: Vec<(&'static str, u32)>,
}

/// Numbers in the module's memory, and the `posenc_tensor` that views them.
#[derive(Clone, Copy)]
pub(crate) struct Tensor {
    pub(crate) view: u32,
    pub(crate) at: u32,
    count: usize,
}

impl Calls<'_> {
    fn running(&mut self) -> Result<&mut Running> {
        match &self.running.trapped {
            Some(why) => Err(why.clone()),
            None => Ok(self.running),
        }
    }

    fn trapped(&mut self, why: wasmi::Error) -> Error {
        let error = Error::module(format!("{why}; load it again"));
        self.running.trapped = Some(error.clone());
        error
    }

    fn alloc(&mut self, size: usize) -> Result<u32> {
        let asked = u32::try_from(size.max(8)).map_err(|_| {
            Error::module(format!("{size} bytes are more than its memory can hold"))
        })?;
        let running = self.running()?;
        let at = match running.malloc.call(&mut running.store, asked) {
            Ok(at) => at,
            Err(why) => return Err(self.trapped(why)),
        };
        if at == 0 {
            return Err(Error::module(format!("no memory for {size} bytes")));
        }
        self.held.push(("free", at));
        Ok(at)
    }

    fn slice(&mut self, at: u32, size: usize) -> Result<&mut [u8]> {
        let running = self.running()?;
        running
            .memory
            .data_mut(&mut running.store)
            .get_mut(at as usize..)
            .and_then(|from| from.get_mut(..size))
            .ok_or_else(|| Error::module("an address outside of its memory"))
    }

    pub(crate) fn bytes(&mut self, given: &[u8]) -> Result<u32> {
        let at = self.alloc(given.len())?;
        self.slice(at, given.len())?.copy_from_slice(given);
        Ok(at)
    }

    pub(crate) fn text(&mut self, given: &str) -> Result<u32> {
        if given.contains('\0') {
            return Err(Error::misuse("a text must not contain a zero byte"));
        }
        let at = self.alloc(given.len() + 1)?;
        let room = self.slice(at, given.len() + 1)?;
        room[..given.len()].copy_from_slice(given.as_bytes());
        room[given.len()] = 0;
        Ok(at)
    }

    pub(crate) fn optional_text(&mut self, given: Option<&str>) -> Result<u32> {
        given.map_or(Ok(0), |text| self.text(text))
    }

    pub(crate) fn longs(&mut self, given: &[i64]) -> Result<u32> {
        let bytes: Vec<u8> = given.iter().flat_map(|one| one.to_le_bytes()).collect();
        self.bytes(&bytes)
    }

    pub(crate) fn read_longs(&mut self, at: u32, count: usize) -> Result<Vec<i64>> {
        let values = self.slice(at, 8 * count)?.chunks_exact(8);
        Ok(values.map(|one| i64::from_le_bytes(one.try_into().unwrap_or_default())).collect())
    }

    /// A struct of c.h by the names of its members. Members left out are zero, and struct_size is
    /// filled in.
    pub(crate) fn structure(&mut self, name: &str, members: &[(&str, &[i64])]) -> Result<u32> {
        let layout = Arc::clone(&self.running.layout);
        let unknown = |what: &str| Error::module(format!("it knows no {what}"));
        let form = layout.get(name).ok_or_else(|| unknown(name))?;
        let mut made = vec![0; form.size];
        let size = ("struct_size", &[form.size as i64][..]);
        for (member, values) in std::iter::once(&size).chain(members) {
            let (at, kind) = match form.members.get(*member) {
                Some(Member::One(at, kind) | Member::Array(at, kind, _)) => (*at, kind),
                None => return Err(unknown(member)),
            };
            let each = if kind.ends_with("64") { 8 } else { 4 };
            for (i, value) in values.iter().enumerate() {
                made[at + i * each..][..each].copy_from_slice(&value.to_le_bytes()[..each]);
            }
        }
        self.bytes(&made)
    }

    /// A row-major tensor of doubles, filled where numbers are given.
    pub(crate) fn tensor(&mut self, shape: &[usize], from: Option<&[f64]>) -> Result<Tensor> {
        let overflow = || Error::misuse(format!("a tensor {shape:?} has too many numbers"));
        let count = shape
            .iter()
            .try_fold(1usize, |count, extent| count.checked_mul(*extent))
            .filter(|count| *count < 1 << 29)
            .ok_or_else(overflow)?;
        if let Some(given) = from.filter(|given| given.len() != count) {
            let got = given.len();
            return Err(Error::misuse(format!("{got} numbers do not fill a tensor {shape:?}")));
        }
        let at = self.alloc(8 * count)?;
        if let Some(given) = from {
            for (to, value) in self.slice(at, 8 * count)?.chunks_exact_mut(8).zip(given) {
                to.copy_from_slice(&value.to_le_bytes());
            }
        }
        let extents: Vec<i64> = shape.iter().map(|extent| *extent as i64).collect();
        let stride: Vec<i64> =
            (1..=shape.len()).map(|axis| extents[axis..].iter().product()).collect();
        let view = self.structure(
            "posenc_tensor",
            &[
                ("dtype", &[0]),
                ("rank", &[shape.len() as i64]),
                ("data", &[at.into()]),
                ("shape", &extents),
                ("stride", &stride),
            ],
        )?;
        Ok(Tensor { view, at, count })
    }

    pub(crate) fn read(&mut self, tensor: Tensor) -> Result<Vec<f64>> {
        let values = self.slice(tensor.at, 8 * tensor.count)?.chunks_exact(8);
        Ok(values.map(|one| f64::from_le_bytes(one.try_into().unwrap_or_default())).collect())
    }

    fn invoke(&mut self, name: &'static str, args: &[Arg], results: &mut [Val]) -> Result<()> {
        let running = self.running()?;
        let function = match running.functions.get(name) {
            Some(known) => *known,
            None => {
                let found = running
                    .instance
                    .get_func(&running.store, name)
                    .ok_or_else(|| Error::module(format!("it has no {name}")))?;
                running.functions.insert(name, found);
                found
            }
        };
        let args: Vec<Val> = args
            .iter()
            .map(|arg| match arg {
                Arg::Int(value) => Val::I32(*value as i32),
                Arg::Long(value) => Val::I64(*value),
            })
            .collect();
        function.call(&mut running.store, &args, results).map_err(|why| self.trapped(why))
    }

    pub(crate) fn void(&mut self, name: &'static str, handle: u32) -> Result<()> {
        if name == "free" {
            let running = self.running()?;
            return match running.free.call(&mut running.store, handle) {
                Ok(()) => Ok(()),
                Err(why) => Err(self.trapped(why)),
            };
        }
        self.invoke(name, &[handle.into()], &mut [])
    }

    fn pointer(&mut self, name: &'static str, args: &[Arg]) -> Result<u32> {
        let mut result = [Val::I32(0)];
        self.invoke(name, args, &mut result)?;
        Ok(result[0].i32().unwrap_or_default() as u32)
    }

    fn string(&mut self, at: u32) -> Result<String> {
        let running = self.running()?;
        let all = running.memory.data(&running.store);
        let from = all.get(at as usize..).unwrap_or_default();
        let end = from.iter().position(|byte| *byte == 0).unwrap_or_default();
        Ok(String::from_utf8_lossy(&from[..end]).into_owned())
    }

    /// The text of a function that returns one.
    pub(crate) fn said(&mut self, name: &'static str) -> Result<String> {
        let at = self.pointer(name, &[])?;
        self.string(at)
    }

    pub(crate) fn call(&mut self, name: &'static str, args: &[Arg]) -> Result<()> {
        let mut status = [Val::I32(0)];
        self.invoke(name, args, &mut status)?;
        let kind = match status[0].i32() {
            Some(0) => return Ok(()),
            Some(1) => ErrorKind::Misuse,
            _ => ErrorKind::Refused,
        };
        let message = self.said("posenc_last_error")?;
        let parts = [self.part(0)?, self.part(1)?, self.part(2)?, in_our_words(&self.part(3)?)];
        Err(Error::new(kind, in_our_words(&message)).with_parts(parts))
    }

    fn part(&mut self, which: u32) -> Result<String> {
        let at = self.pointer("posenc_last_error_part", &[which.into()])?;
        self.string(at)
    }

    /// What a function hands out through its last argument.
    pub(crate) fn make(&mut self, name: &'static str, args: &[Arg]) -> Result<u32> {
        let slot = self.running.slot;
        self.call(name, &[args, &[slot.into()]].concat())?;
        let given = self.slice(slot, 4)?;
        Ok(u32::from_le_bytes([given[0], given[1], given[2], given[3]]))
    }

    /// The same for the time of these calls: `free` is the function that frees it.
    pub(crate) fn make_held(
        &mut self,
        name: &'static str,
        args: &[Arg],
        free: &'static str,
    ) -> Result<u32> {
        let handle = self.make(name, args)?;
        self.held.push((free, handle));
        Ok(handle)
    }

    /// The JSON that a function hands out.
    pub(crate) fn json<T: DeserializeOwned>(
        &mut self,
        name: &'static str,
        args: &[Arg],
    ) -> Result<T> {
        let at = self.make(name, args)?;
        let text = self.string(at)?;
        self.void("posenc_string_free", at)?;
        serde_json::from_str(&text).map_err(|why| Error::module(format!("{name}: {why}")))
    }
}

impl Drop for Calls<'_> {
    fn drop(&mut self) {
        for (free, at) in std::mem::take(&mut self.held).into_iter().rev() {
            // A module that trapped needs no order any more.
            let _ = self.void(free, at);
        }
    }
}
