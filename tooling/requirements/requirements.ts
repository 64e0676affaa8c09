import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import * as z from 'zod'

const requirement = z
  .strictObject({
    /** One number, or two for the same requirement: `T3/G1`. */
    number: z.string().regex(/^[A-Z]\d+(\/[A-Z]\d+)*$/),
    about: z.string(),
    /** One to three files or folders with the implementation. */
    metBy: z.array(z.string()).min(1).max(3),
    text: z.string(),
    state: z.enum(['met', 'partly', 'open']).default('met'),
    /** What is missing or, for a requirement that is met, a clarification. */
    remark: z.string().optional(),
  })
  .refine(
    ({ state, remark }) => state === 'met' || remark !== undefined,
    'a requirement that is not met needs a remark',
  )

const sections = z.array(z.strictObject({ section: z.string(), requirements: z.array(requirement) }))

export type Requirement = z.output<typeof requirement>

/** All requirements, by section. */
export const requirements = sections.parse(parse(readFileSync(new URL('requirements.yaml', import.meta.url), 'utf8')))

export const numbersOf = ({ number }: Requirement): readonly string[] => number.split('/')
