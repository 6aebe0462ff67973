// A plan as posenc prints it (docs/json.md). `make pages` writes this file out of include/posenc/plan.h.
export type PlanInfo = {
  // to the token embedding; null: nothing
  add: {
    kind: 'waves' | 'table' | 'ramp'
    // channels of the embedding
    width?: number | null
    // interleaved: sin, cos, sin, cos…; concatenated: all sines, then all cosines
    layout?: 'interleaved' | 'concatenated' | null
    // radians per position
    frequencies?: number[] | number[][] | null
    // position p has the vector of p + offset, on every axis
    row_offset?: number | null
    // of one axis: this row is all zero; null: none
    zero_row?: number | null
    // 2 for pictures, 3 for videos
    axes?: number | null
    // channels of each block that is laid out by itself, even; empty: one of the width
    blocks?: number[] | null
    // the cosine stands where the sine would
    cosine_first?: boolean | null
    // of every sine and cosine
    amplitude?: number | null
    // rows of the table
    rows?: number | null
    // the table; null where it is learned
    values?: number[][] | null
    // rows of each axis, whose sum a token adds; empty: one axis
    axis_rows?: number[] | null
    // the channel that has the index
    channel?: number | null
    // the index is multiplied by it
    scale?: number | null
    // the token embedding is multiplied by it before the sum (√d)
    embedding_scale: number
  } | null
  // of queries and keys; null: nothing
  rotate: {
    // halves: channels (r, r + rotary_dim/2); interleaved: (2r, 2r + 1)
    pairing: 'halves' | 'interleaved'
    // first channel of the head that rotates
    first_dim: number
    // channels that rotate
    rotary_dim: number
    // the slice is cut into so many equal blocks, each paired by itself
    blocks: number
    // heads with frequencies of their own; 1: all share them
    heads: number
    // 1 for text, 2 or 3 for pictures and videos
    axes: number
    // radians per position, a row for each axis of each head; where each pair takes one axis alone, one row, and axis_of_pair says which
    frequencies: number[][]
    // on cos and sin of both queries and keys: logits grow by its square
    amplitude: number
    // what one side's angles have besides (RoPE++); null: nothing
    phase: {
      // query or key: the side whose angles are shifted
      side: 'query' | 'key' | 'value'
      // heads of that side with phases of their own; 1: all share them
      heads: number
      // added to the angles
      radians: number[][]
    } | null
    // queries grow and keys shrink (xPos); null: neither
    growth: {
      // queries × factor^((p − centre)/scale), keys × its inverse
      factor: number[]
      // tokens over which a pair decays by its factor
      scale: number
      // the position with factor 1
      centre: number
    } | null
    // on cos and sin of each pair, beside the amplitude; absent: 1
    magnitudes?: number[]
    mix: {
      // key heads with a mixture of their own; 1: all share it
      heads: number
      // pairs whose cosines and sines are mixed
      inputs: number
      // pairs that have a sum of them
      outputs: number
      // weights of the cosines
      cosine: number[][][]
      // weights of the sines
      sine: number[][][]
      // sine of the pairs behind, whose cosine is 1
      rest_sine: number
    } | null
    regions: {
      // two regions: keys less than so many tokens behind the query, and keys further behind
      window: number
      // three regions: keys of the query's chunk of so many tokens, of the one before, and of those before that
      chunk: number
      // what holds in each
      region: {
        // where the query is rotated as if it stood
        query: {
          // positions are counted modulo it; 0: as they are
          modulus: number
          // so many tokens share a position
          divisor: number
          // added after the division
          offset: number
          // no position is beyond it; null: no end
          most: number | null
        }
        // where the key is
        key: {
          // positions are counted modulo it; 0: as they are
          modulus: number
          // so many tokens share a position
          divisor: number
          // added after the division
          offset: number
          // no position is beyond it; null: no end
          most: number | null
        }
        // every frequency is multiplied by it
        frequency_scale: number
      }[]
    } | null
    two_angles: {
      // per position, of the second channel of each pair
      radians: number[][]
    } | null
    ggml: {
      // base^(−2/rotary_dim)
      theta_scale: number
      // 1/s of linear scaling and YaRN
      freq_scale: number
      // 1 with YaRN
      ext_factor: number
      // pair where the ramp begins
      ramp_low: number
      // pair where it ends
      ramp_high: number
      // on cos and sin
      attn_factor: number
      // divisor of each pair; empty: all 1
      freq_factors: number[]
      // pairs count from the axis' first one (ggml's vision mode)
      restart: boolean
    } | null
    axis_of_pair: number[] | null
    polar: boolean
    values: boolean
    values_stay: boolean
    angles: 'exact' | 'hf_float' | 'ggml_float'
  } | null
  // on the logits; null: nothing
  bias: {
    kind: 'slope' | 'table'
    // −slope·distance is added to a head's logits
    slopes?: number[] | null
    // −slope·|distance|
    bidirectional?: boolean | null
    // added to q·k, so multiplied by the logits' scale too (Falcon)
    before_scale?: boolean | null
    // the row that a distance on the first axis reads
    rows?: {
      // smallest distance listed
      first: number
      // a row of the table for each distance (query − key) from first on; −1: none
      row: number[]
      // beyond both ends the end's row holds; false: asking there is an error
      saturates: boolean
    } | null
    // the same for the second axis, the third, …, whose values are added
    further_axes?: {
      // smallest distance listed
      first: number
      // a row of the table for each distance (query − key) from first on; −1: none
      row: number[]
      // beyond both ends the end's row holds; false: asking there is an error
      saturates: boolean
    }[]
    // rows of the table
    row_count?: number | null
    // [head or 1][row]; null where they are learned
    values?: number[][] | null
    // as the scheme names them; null: it has none
    buckets?: number | null
    // where the last bucket begins; null: the scheme has none
    max_distance?: number | null
  } | null
  // vectors by distance; null: nothing
  relative: {
    // the row that a distance reads
    rows: {
      // smallest distance listed
      first: number
      // a row of the table for each distance (query − key) from first on; −1: none
      row: number[]
      // beyond both ends the end's row holds; false: asking there is an error
      saturates: boolean
    }
    // lists beside the first: a distance reads a row of each, whose vectors are summed
    further_rows?: {
      // smallest distance listed
      first: number
      // a row of the table for each distance (query − key) from first on; −1: none
      row: number[]
      // beyond both ends the end's row holds; false: asking there is an error
      saturates: boolean
    }[]
    // rows of the tables
    row_count: number
    // k·query[row] is added to the logit
    uses_query: boolean
    // q·key[row] is added to the logit
    uses_key: boolean
    // value[row] is added to the value
    uses_value: boolean
    // [row][channel] or [head][row][channel]; null: learned or not used
    query: number[][] | number[][][] | null
    // the same
    key: number[][] | number[][][] | null
    // the same
    value: number[][] | number[][][] | null
    // null: the scheme has none
    max_distance: number | null
    // channels of the tensors that the query and key tables meet; 0: they meet q and k
    profiles: number
  } | null
  // z = q·k · multiplier/√head_dim · temperature; with a softcap c other than 0 the logit is c·tanh(z/c), else z
  logits: {
    // beside 1/√head_dim
    multiplier: number
    // how logits grow with the position p of their query, with u = (p + offset)/floor; none: they do not; steps: 1 + beta·ln(1 + ⌊u⌋); log: 1 + beta·ln(max(1, u)); power: (1 + u)^beta; heads: head_scale·ln(p + offset) + head_bias
    temperature: 'none' | 'steps' | 'log' | 'power' | 'heads'
    // of the temperature
    beta: number
    // of the temperature
    floor: number
    // of the temperature
    offset: number
    // null where it is the checkpoint's
    head_scale: number[] | null
    // null where it is the checkpoint's
    head_bias: number[] | null
    // c of c·tanh(z/c); 0: none
    softcap: number
  }
  // lengths for which the plan holds, both ends included; null: any length
  valid: {
    // shortest
    from: number
    // longest; null: no end
    to: number | null
  } | null
  // what a later posenc wrote and this one does not know; left out where there is none
  unknown?: string[]
}
