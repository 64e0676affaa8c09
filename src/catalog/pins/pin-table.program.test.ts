import { expect, test } from 'vitest'
import { withFewFiles } from '../../../tests/fixtures/few-files.ts'
import { pinsPlace, toolEntry } from './pins.fixture.ts'

test.skipIf(process.platform === 'win32')(
  'B5: while too many files are open, pins are neither distrusted nor taken as missing',
  async () => {
    await using place = await pinsPlace()
    const pins = await place.open('quarantine')
    pins.check(toolEntry('read'))
    await pins.settled()
    const printed = await withFewFiles(`
      import { PinTable } from ${JSON.stringify(new URL('pin-table.ts', import.meta.url))}
      const log = { debug() {}, info() {}, warn() {}, error() {} }
      const clock = { now: () => 1, after() {} }
      const options = { folder: ${JSON.stringify(place.folder)}, clock, log }
      const open = () => [...new PinTable(options).of('files').pins.keys()]
      exhaust()
      let thrown
      try { open() } catch ({ code }) { thrown = code }
      release()
      console.log(JSON.stringify([thrown, open()]))
    `)
    expect(JSON.parse(printed)).toEqual(['EMFILE', ['tool:read']])
  },
)
