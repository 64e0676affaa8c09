import * as z from 'zod'
import { numeric, textLike } from './values.ts'

/** How tools are called that are served. */
export const namingSection = z.strictObject({
  strategy: z
    .enum(['prefix', 'flat', 'custom'])
    .default('prefix')
    .describe('prefix: server and tool; flat: the tool alone where nobody else claims it; custom: as in aliases.'),
  separator: textLike(/^[A-Za-z0-9_-]{1,8}$/, 'one to eight letters, digits, _ or -')
    .default('__')
    .describe('Stands between server and tool; the default fits every model vendor.'),
  aliases: z
    .record(
      textLike(/^[^.]+\..+$/, 'a tool as server.tool'),
      textLike(/^[A-Za-z0-9_-]{1,64}$/, 'a name of up to 64 letters, digits, _ or -'),
    )
    .default({})
    .describe('With strategy custom: names by server.tool; what is not listed is named as with prefix.'),
  maxLength: numeric({ min: 16, max: 64 })
    .prefault(64)
    .describe('Longest served name; longer ones are shortened with a hash.'),
})
