import { parseArgs } from 'node:util'
import { type Eras, startFixture } from './fixture/http.ts'
import { serveFixtureStdio } from './fixture/stdio.ts'

/**
 * The server with everything the conformance suite asks for, as a program:
 * `node fixture-server.ts [--eras both|legacy|modern] [--port 0]` says on its first line where it listens,
 * `node fixture-server.ts --stdio` serves its standard input and output.
 */
const { values } = parseArgs({
  options: {
    eras: { type: 'string', default: 'both' },
    port: { type: 'string', default: '0' },
    stdio: { type: 'boolean', default: false },
  },
})

if (values.stdio) {
  await serveFixtureStdio(values.eras as Eras)
} else {
  const { url } = await startFixture({ eras: values.eras as Eras, port: Number(values.port) })
  process.stdout.write(JSON.stringify({ url }) + '\n')
}
