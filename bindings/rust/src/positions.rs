use std::ops::Range;

use crate::error::{Error, Result};
use crate::memory::Calls;

/// Where tokens stand. A range, a list of ids and, for pictures and videos, a list an axis convert
/// to it: `0..16`, `vec![0, 1, 5]`, `vec![vec![0, 0, 1], vec![0, 1, 0]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Positions {
    /// `first`, `first` + 1, …
    Range {
        /// The position of the first token.
        first: i64,
        /// How many tokens.
        count: usize,
    },
    /// One by one along each axis: `[axis][token]`.
    Ids(Vec<Vec<i64>>),
}

impl Positions {
    /// How many tokens.
    pub fn count(&self) -> usize {
        match self {
            Self::Range { count, .. } => *count,
            Self::Ids(axes) => axes.first().map_or(0, Vec::len),
        }
    }

    // A handle of c.h for the time of some calls.
    pub(crate) fn hold(&self, calls: &mut Calls) -> Result<u32> {
        let free = "posenc_positions_free";
        match self {
            Self::Range { first, count } => calls.make_held(
                "posenc_positions_range",
                &[(*first).into(), (*count as i64).into()],
                free,
            ),
            Self::Ids(axes) => {
                let count = self.count();
                if axes.iter().any(|axis| axis.len() != count) {
                    return Err(Error::misuse("every axis must have as many ids as the first"));
                }
                let ids = calls.longs(&axes.concat())?;
                let (of_axes, of_tokens) = (axes.len() as i64, count as i64);
                let extents = [ids.into(), of_axes.into(), 1i64.into(), of_tokens.into()];
                calls.make_held("posenc_positions_ids", &extents, free)
            }
        }
    }

    // What a function of c.h makes.
    pub(crate) fn made(calls: &mut Calls, handle: u32) -> Result<Self> {
        let shape = calls.longs(&[0; 3])?;
        calls.call("posenc_positions_shape", &[handle.into(), shape.into()])?;
        let shape = calls.read_longs(shape, 3)?;
        let (axes, count) = (shape[0] as usize, shape[2] as usize);
        let ids = calls.longs(&vec![0; axes * count])?;
        let room = ((axes * count) as u32).into();
        calls.call("posenc_positions_copy", &[handle.into(), ids.into(), room])?;
        let ids = calls.read_longs(ids, axes * count)?;
        Ok(Self::Ids(ids.chunks(count.max(1)).map(<[i64]>::to_vec).collect()))
    }
}

impl From<Range<i64>> for Positions {
    fn from(range: Range<i64>) -> Self {
        let count = range.end.saturating_sub(range.start).max(0) as usize;
        Self::Range { first: range.start, count }
    }
}
impl From<Vec<i64>> for Positions {
    fn from(ids: Vec<i64>) -> Self {
        Self::Ids(vec![ids])
    }
}
impl From<&[i64]> for Positions {
    fn from(ids: &[i64]) -> Self {
        ids.to_vec().into()
    }
}
impl<const N: usize> From<[i64; N]> for Positions {
    fn from(ids: [i64; N]) -> Self {
        ids.to_vec().into()
    }
}
impl From<Vec<Vec<i64>>> for Positions {
    fn from(axes: Vec<Vec<i64>>) -> Self {
        Self::Ids(axes)
    }
}
impl From<&Positions> for Positions {
    fn from(given: &Positions) -> Self {
        given.clone()
    }
}
