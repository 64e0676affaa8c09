/** The names of the built-in tools, whether they are served or not: nobody else's tool beside them can have one. */
export const builtInNames: readonly string[] = [
  'hash',
  'time',
  'fetch',
  'generate',
  'vision',
  'speech',
  'diffusion',
  'execute_code',
]
