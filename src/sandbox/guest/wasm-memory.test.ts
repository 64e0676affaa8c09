import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { describe, expect, test } from 'vitest'
import { limitWasmMemory } from './machine.ts'

declare const WebAssembly: {
  Module: new (bytes: Uint8Array) => object
  Instance: new (module: object, imports: object) => { readonly exports: { readonly memory: Memory } }
}
interface Memory {
  readonly buffer: ArrayBuffer
  grow(pages: number): number
}

const engine = readFileSync(createRequire(import.meta.url).resolve('quickjs-wasi/quickjs.wasm'))

/** Every function that the engine imports, doing nothing. */
const imports = new Proxy({}, { get: () => new Proxy({}, { get: () => () => 0 }) })

describe('the memory of the engine', () => {
  test('S7: cannot grow beyond its maximum', () => {
    const module = new WebAssembly.Module(limitWasmMemory(engine, 8 * 1024 * 1024))
    const { memory } = new WebAssembly.Instance(module, imports).exports
    const pages = 8 * 16 - memory.buffer.byteLength / 65_536
    expect(memory.grow(pages)).toBeGreaterThan(0)
    expect(() => memory.grow(1)).toThrow()
    expect(memory.buffer.byteLength).toBe(8 * 1024 * 1024)
  })

  test('a module without memory is refused', () => {
    expect(() => limitWasmMemory(engine.subarray(0, 8), 1)).toThrow('no memory')
  })
})
