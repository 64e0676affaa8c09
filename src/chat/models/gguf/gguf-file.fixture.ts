/** What a GGUF file says about itself: integers, numbers (written as floats where marked so), text and lists. */
export type Fact =
  | { readonly kind: 'uint32'; readonly value: number }
  | { readonly kind: 'float32'; readonly value: number }
  | { readonly kind: 'string'; readonly value: string }
  | { readonly kind: 'strings'; readonly value: readonly string[] }
  | { readonly kind: 'int32s'; readonly value: readonly number[] }

/** Numbers of four bytes each, in rows of `shape[0]`. */
export interface Tensor {
  readonly shape: readonly number[]
  readonly values: Float32Array
}

const types = { uint32: 4, int32: 5, float32: 6, string: 8, array: 9 } as const
const alignment = 32
const padded = (length: number): number => Math.ceil(length / alignment) * alignment

const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}
const uint64 = (value: number): Buffer => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(BigInt(value))
  return bytes
}
const string = (value: string): Buffer => Buffer.concat([uint64(Buffer.byteLength(value)), Buffer.from(value)])
const list = (type: number, items: readonly Buffer[]): Buffer =>
  Buffer.concat([uint32(types.array), uint32(type), uint64(items.length), ...items])

function factBytes(fact: Fact): Buffer {
  switch (fact.kind) {
    case 'uint32':
      return Buffer.concat([uint32(types.uint32), uint32(fact.value)])
    case 'float32':
      return Buffer.concat([uint32(types.float32), Buffer.from(Float32Array.of(fact.value).buffer)])
    case 'string':
      return Buffer.concat([uint32(types.string), string(fact.value)])
    case 'strings':
      return list(types.string, fact.value.map(string))
    case 'int32s':
      return list(types.int32, fact.value.map(uint32))
  }
}

/** A GGUF file of version 3: its facts, where its tensors are, then the tensors. */
export function ggufBytes(
  facts: Readonly<Record<string, Fact>>,
  tensors: Readonly<Record<string, Tensor>>,
): Buffer<ArrayBuffer> {
  let offset = 0
  const places: Buffer[] = []
  const data: Buffer[] = []
  for (const [name, { shape, values }] of Object.entries(tensors)) {
    const bytes = Buffer.from(values.buffer, values.byteOffset, values.byteLength)
    places.push(string(name), uint32(shape.length), ...shape.map(uint64), uint32(0), uint64(offset))
    data.push(bytes, Buffer.alloc(padded(bytes.length) - bytes.length))
    offset += padded(bytes.length)
  }
  const head = Buffer.concat([
    Buffer.from('GGUF'),
    uint32(3),
    uint64(Object.keys(tensors).length),
    uint64(Object.keys(facts).length),
    ...Object.entries(facts).flatMap(([name, fact]) => [string(name), factBytes(fact)]),
    ...places,
  ])
  return Buffer.concat([head, Buffer.alloc(padded(head.length) - head.length), ...data])
}
