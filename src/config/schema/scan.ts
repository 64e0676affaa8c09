import * as z from 'zod'

/** What is looked for in what servers answer; definitions are always scanned. */
export const scanSection = z.strictObject({
  results: z
    .enum(['off', 'warn', 'strip'])
    .default('off')
    .describe(
      'Whether results of tools, resources and prompts are scanned for hidden characters and instructions to the model: `warn` reports and marks them, `strip` also takes hidden characters out.',
    ),
})
