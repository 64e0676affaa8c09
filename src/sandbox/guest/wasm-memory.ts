const memorySection = 5
const pageSize = 65_536

/** The same module, whose memory cannot grow beyond `bytes`: the engine's own limit does not count all it allocates. */
export function limitMemory(module: Uint8Array, bytes: number): Uint8Array<ArrayBuffer> {
  let at = 8
  while (at < module.length) {
    const start = at
    const kind = module[at++]
    const size = read(at)
    at = size.next
    if (kind === memorySection) {
      const minimum = read(read(at).next + 1)
      const maximum = Math.ceil(bytes / pageSize)
      // One memory, with a maximum (flag 1).
      const body = [1, 1, ...leb(minimum.value), ...leb(Math.max(minimum.value, maximum))]
      const section = Uint8Array.from([memorySection, ...leb(body.length), ...body])
      return new Uint8Array(Buffer.concat([module.subarray(0, start), section, module.subarray(at + size.value)]))
    }
    at += size.value
  }
  throw new Error('The module has no memory of its own to limit.')

  function read(from: number): { readonly value: number; readonly next: number } {
    let value = 0
    for (let next = from, shift = 0; ; shift += 7) {
      const byte = module[next++] as number
      value += (byte & 0x7f) * 2 ** shift
      if (byte < 0x80) return { value, next }
    }
  }
}

function leb(value: number): number[] {
  const bytes: number[] = []
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return [...bytes, rest]
    bytes.push((rest % 128) | 0x80)
  }
}
