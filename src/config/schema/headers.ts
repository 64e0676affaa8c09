import * as z from 'zod'
import { textLike, verbatim } from './values.ts'

/** HTTP headers; a line break in a value would smuggle in another header. */
export const headers = z
  .record(
    textLike(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, 'the name of an HTTP header'),
    verbatim().refine((value) => !/[\0-\x08\x0a-\x1f\x7f]/.test(value), {
      error: 'a header value without control characters',
    }),
  )
  .default({})
