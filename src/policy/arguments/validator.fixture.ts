import { expect } from 'vitest'
import { ToolwayError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import { argumentValidator } from './validate.ts'

export type Fields = Record<string, unknown>

/** A validator, what it warned of, and the sentence that it refuses arguments with. */
export function openValidator() {
  const warnings: object[] = []
  const log: Log = { debug() {}, info() {}, error() {}, warn: (facts) => void warnings.push(facts) }
  const validate = argumentValidator({ log })
  const refusal = async (schema: Fields, args: Fields): Promise<string | undefined> => {
    try {
      await validate(schema, args, 'files.read')
      return undefined
    } catch (error) {
      expect(error).toBeInstanceOf(ToolwayError)
      expect((error as ToolwayError).code).toBe('INVALID_ARGUMENTS')
      return (error as Error).message
    }
  }
  /** Why a tool with this schema cannot be used at all. */
  const unusable = async (schema: Fields, args: Fields): Promise<string | undefined> => {
    try {
      await validate(schema, args, 'files.read')
      return undefined
    } catch (error) {
      expect(error).toMatchObject({ code: 'QUARANTINED', details: { server: 'files', rule: 'inputSchema' } })
      return (error as Error).message
    }
  }
  const problems = async (schema: Fields, args: Fields) =>
    (await refusal(schema, args))?.replace(/^Invalid arguments for files\.read: /, '')
  return { warnings, log, validate, refusal, unusable, problems }
}
