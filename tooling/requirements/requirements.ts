import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import * as z from 'zod'

const requirement = z
  .strictObject({
    /** One number, or two that are one requirement: `T3/G1`. */
    number: z.string().regex(/^[A-Z]\d+(\/[A-Z]\d+)*$/),
    about: z.string(),
    /** The one to three places where a reader should look. */
    metBy: z.array(z.string()).min(1).max(3),
    text: z.string(),
    state: z.enum(['met', 'partly', 'open']).default('met'),
    /** What is missing; of one that is met, how it is to be understood. */
    remark: z.string().optional(),
  })
  .refine(({ state, remark }) => state === 'met' || remark !== undefined, 'what is not met has a reason')

const sections = z.array(z.strictObject({ section: z.string(), requirements: z.array(requirement) }))

export type Requirement = z.output<typeof requirement>

/** What Toolway must do, in the sections and the order that it is thought of. */
export const requirements = sections.parse(parse(readFileSync(new URL('requirements.yaml', import.meta.url), 'utf8')))

export const numbersOf = ({ number }: Requirement): readonly string[] => number.split('/')
