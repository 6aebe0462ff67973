// What is fetched at the first look and kept; a fetch that failed is tried again.
export function once<T>(start: () => Promise<T>): () => Promise<T> {
  let under_way: Promise<T> | undefined
  return () =>
    (under_way ??= start().catch((error: Error) => {
      under_way = undefined
      throw error
    }))
}

export const bytes = async (url: string) => (await fetch(url)).arrayBuffer()
