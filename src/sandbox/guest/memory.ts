import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import type { Remembered } from './machine.ts'

/** What an environment remembers, in few bytes: most of a machine's memory is empty. */
export function packMemory({ memory, stackPointer, runtimePtr, contextPtr, tokens }: Remembered): Buffer {
  const header = Buffer.alloc(headerLength)
  const numbers = [stackPointer, runtimePtr, contextPtr, tokens.finish, tokens.answered]
  for (const [index, number] of numbers.entries()) header.writeUInt32BE(number, index * 4)
  const packed = zstdCompressSync(memory, { params: { [constants.ZSTD_c_compressionLevel]: 1 } })
  return Buffer.concat([header, packed])
}

export function unpackMemory(bytes: Buffer, maxLength: number): Remembered {
  const number = (index: number) => bytes.readUInt32BE(index * 4)
  return {
    memory: zstdDecompressSync(bytes.subarray(headerLength), { maxOutputLength: maxLength }),
    stackPointer: number(0),
    runtimePtr: number(1),
    contextPtr: number(2),
    tokens: { finish: number(3), answered: number(4) },
  }
}

const headerLength = 20
