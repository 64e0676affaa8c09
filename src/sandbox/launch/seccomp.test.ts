import { describe, expect, test } from 'vitest'
import { seccompFilter } from './seccomp.ts'

const ALLOW = 0x7fff0000
const KILL = 0x80000000
const EPERM = 0x50001
const ENOSYS = 0x50026
const arch = { x64: 0xc000003e, arm64: 0xc00000b7 }

/** What the kernel would answer: the few operations of its machine that the filter uses. */
function ask(
  filter: Buffer,
  data: { readonly number: number; readonly arch: number; readonly argument?: number },
): number {
  const fields = new Map([
    [0, data.number],
    [4, data.arch],
    [16, data.argument ?? 0],
  ])
  let value = 0
  for (let at = 0; at < filter.length / 8; at++) {
    const [code, then, otherwise, k] = [
      filter.readUInt16LE(at * 8),
      filter.readUInt8(at * 8 + 2),
      filter.readUInt8(at * 8 + 3),
      filter.readUInt32LE(at * 8 + 4),
    ]
    if (code === 0x06) return k
    if (code === 0x20) value = fields.get(k) as number
    else {
      const holds = code === 0x15 ? value === k : code === 0x35 ? value >= k : (value & k) !== 0
      at += holds ? then : otherwise
    }
  }
  throw new Error('the filter came to no end')
}

describe.each(['x64', 'arm64'] as const)('the filter of system calls on %s', (processor) => {
  const filter = seccompFilter(processor) as Buffer
  const answer = (x64: number, arm64: number, argument?: number) =>
    ask(filter, {
      number: processor === 'x64' ? x64 : arm64,
      arch: arch[processor],
      ...(argument !== undefined && { argument }),
    })

  test('S7: refuses unneeded system calls', () => {
    for (const [x64, arm64] of [
      [101, 117],
      [165, 40],
      [272, 97],
      [321, 280],
      [250, 219],
      [323, 282],
      [298, 241],
      [41, 198],
    ] as const) {
      expect(answer(x64, arm64)).toBe(EPERM)
    }
    expect(answer(425, 425)).toBe(ENOSYS)
    expect(answer(435, 435)).toBe(ENOSYS)
    expect(answer(999, 999)).toBe(ENOSYS)
  })

  test('S7: allows reading, writing, mapping memory and threads, but no processes', () => {
    for (const [x64, arm64] of [
      [0, 63],
      [1, 64],
      [9, 222],
      [10, 226],
      [202, 98],
      [232, 22],
      [231, 94],
    ] as const) {
      expect(answer(x64, arm64)).toBe(ALLOW)
    }
    expect(answer(56, 220, 0x3d0f00)).toBe(ALLOW)
    expect(answer(56, 220, 17)).toBe(EPERM)
    expect(answer(56, 220, 0x10000000)).toBe(EPERM)
  })

  test('S7: kills programs of another architecture', () => {
    expect(ask(filter, { number: 0, arch: 0x40000003 })).toBe(KILL)
    if (processor === 'x64') expect(answer(0x40000000, 0)).toBe(EPERM)
  })
})

test('no filter for unsupported processors', () => {
  expect(seccompFilter('riscv64')).toBeUndefined()
})
