import type { Writable } from 'node:stream'
import { styleText } from 'node:util'
import pino from 'pino'
import type { Log } from '../core/log.ts'

export interface LogOptions {
  readonly level: string
  /** Standard error by default: standard output belongs to answers. */
  readonly destination?: Writable
  /** Lines for people instead of JSON for machines. */
  readonly pretty?: boolean
}

export function createLog({ level, destination = process.stderr, pretty = false }: LogOptions): Log {
  const write = pretty
    ? (line: string) => destination.write(readable(line, destination))
    : (line: string) => destination.write(line)
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, { write })
}

const names: Record<number, string> = { 10: 'trace', 20: 'debug', 30: 'info', 40: 'warn', 50: 'error', 60: 'fatal' }
const colours = { trace: 'gray', debug: 'gray', info: 'green', warn: 'yellow', error: 'red', fatal: 'red' } as const

/** `12:30:01 warn  filesystem: lost the line … (error="…")` */
function readable(line: string, stream: Writable): string {
  const paint = (colour: 'gray' | (typeof colours)[keyof typeof colours], text: string) =>
    styleText(colour, text, { stream })
  const { level, time, msg, server, err, ...facts } = JSON.parse(line)
  const name = (names[level] ?? 'info') as keyof typeof colours
  const rest = Object.entries(err ? { ...facts, err: err.message } : facts)
  const tail = rest.map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
  const head = `${paint('gray', String(time).slice(11, 19))} ${paint(colours[name], name.padEnd(5))}`
  return `${head} ${server ? `${server}: ` : ''}${msg}${tail.length > 0 ? paint('gray', ` (${tail.join(', ')})`) : ''}\n`
}
