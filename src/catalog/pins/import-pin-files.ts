import { readdirSync, readFileSync, renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import * as z from 'zod'
import type { Log } from '../../core/log.ts'
import { builtInSources } from '../../core/source.ts'
import { parseJson } from '../../json/parse-json.ts'
import { fileName } from '../descriptor-store.ts'
import { blockSchema, factsSchema, pinKey, pinSchema, redactPath, type ServerPins } from './pin-record.ts'

/** Max bytes per file. Earlier versions never wrote a larger one. */
const maxFileBytes = 64 * 1_048_576

/** 0.2 kept blocks that an operator had lifted, with the time of the approval. */
const blocksInForce = z
  .array(blockSchema.extend({ lifted: z.number().optional() }))
  .transform((blocks) => blocks.filter(({ at, lifted = 0 }) => at > lifted))
  .transform((blocks) => (blocks.length > 0 ? blocks : undefined))

const fileSchema = factsSchema.extend({
  version: z.union([z.literal(1), z.literal(2)]),
  server: z.string(),
  /** Absent in files of 0.1. */
  listed: z.boolean().optional(),
  pins: z.array(pinSchema.extend({ blocked: blocksInForce.optional() })),
})

const damagedEnd = '.damaged'

/**
 * Reads the pins that Toolway 0.1 and 0.2 stored, one file per server, and leaves the files in place. Also returns the
 * names of the damaged files, which are moved aside. Throws if it cannot find out what there is.
 */
export function readPinFiles(folder: string, log: Log): { records: ServerPins[]; lost: string[] } {
  const names = readdirSync(folder).filter((name) => /^[^.].*\.json(?:\.damaged)?$/.test(name))
  const records: ServerPins[] = []
  const lost: string[] = []
  for (const name of new Set(names.map((name) => name.replace(damagedEnd, '')))) {
    const record = names.includes(name) ? readPinFile(join(folder, name), log) : undefined
    if (record && fileName(record.server) === name) records.push(record)
    else {
      lost.push(name)
      if (names.includes(name)) moveFileAside(join(folder, name), log)
    }
  }
  // 0.1 pinned sinks, too.
  return { records: records.filter(({ server }) => !builtInSources.includes(server)), lost }
}

function readPinFile(path: string, log: Log): ServerPins | undefined {
  if (statSync(path).size > maxFileBytes) return undefined
  // Do not compile the schema (`jitless`): that takes longer than parsing the few files that are read once.
  const { data, error } = fileSchema.safeParse(parseJson(readFileSync(path, 'utf8')), { jitless: true })
  if (!data) {
    log.debug({ path, err: error }, 'invalid pins')
    return undefined
  }
  const { server, pins, origins, acknowledged, distrusted } = data
  const listed = data.listed ?? pins.some(({ kind }) => kind !== 'instructions')
  // 0.1 stored the whole path of a URL.
  const redacted = origins.map((origin) => ({ ...origin, text: redactPath(origin.text) }))
  return {
    server,
    facts: { origins: redacted, acknowledged, distrusted, listed },
    pins: new Map(pins.map((pin) => [pinKey(pin.kind, pin.name), pin])),
  }
}

function moveFileAside(path: string, log: Log): void {
  renameSync(path, path + damagedEnd)
  log.warn(
    { path: path + damagedEnd },
    "moved a server's damaged pins away; approve its definitions again with `toolway pins approve`",
  )
}
