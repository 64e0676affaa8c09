import * as z from 'zod'
import { flag, names, path } from './values.ts'

const guarded = names('an argument such as path, paths[] or options.file').describe(
  'Which arguments are checked; [] stands for every item of a list.',
)

const pathGuard = z.strictObject({
  kind: z.literal('path').describe('Keeps file names inside allowed folders.'),
  arguments: guarded,
  roots: z.array(path()).min(1).describe('Folders that a path may lie in, symbolic links resolved.'),
})

const sqlGuard = z.strictObject({
  kind: z.literal('sql').describe('Lets one parsed SQL statement through.'),
  arguments: guarded,
  dialect: z
    .enum(['any', 'postgres', 'mysql', 'sqlite'])
    .default('any')
    .describe(
      'Dialect of the database. any: it is not known, so only statements that every common database reads alike pass.',
    ),
  readOnly: flag().prefault(true).describe('Refuses everything that is not a read.'),
})

const urlGuard = z.strictObject({
  kind: z.literal('url').describe('Keeps requests away from private addresses.'),
  arguments: guarded,
  allowPrivate: flag().prefault(false).describe('Lets private and loopback addresses through.'),
})

/** What is checked about a call's arguments before it is sent. */
export const guard = z.discriminatedUnion('kind', [pathGuard, sqlGuard, urlGuard])
