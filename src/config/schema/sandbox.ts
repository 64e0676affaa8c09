import * as z from 'zod'
import { limit, names, path, size } from './values.ts'

const languages = ['javascript', 'typescript', 'python'] as const

/** Where code of agents runs. */
export const sandboxSection = z.strictObject({
  languages: z
    .array(z.enum(languages))
    .default([...languages])
    .describe('Languages that may be run.'),
  minIsolation: z
    .enum(['bwrap', 'process', 'worker'])
    .default('process')
    .describe('Weakest isolation that is accepted; code is refused where it cannot be had.'),
  timeout: limit().prefault('30s').describe('Time limit of one run.'),
  memory: size().prefault('64MiB').describe('Most memory of one run.'),
  allowNetwork: names('a host').default([]).describe('Hosts that code may reach; none when empty.'),
  allowPaths: z.array(path()).default([]).describe('Folders that code may read; none when empty.'),
})
