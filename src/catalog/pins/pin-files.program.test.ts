import { join } from 'node:path'
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
      import { fileName, openPinFiles } from ${JSON.stringify(new URL('pin-files.ts', import.meta.url))}
      const warn = (_, message) => console.log(message)
      const files = openPinFiles(${JSON.stringify(join(place.folder, 'pins'))}, { warn })
      exhaust()
      const ends = await Promise.allSettled([files.read(fileName('files')), files.load(), files.signatures()])
      release()
      console.log(JSON.stringify(ends.map(({ reason }) => reason?.code)))
    `)
    expect(JSON.parse(printed)).toEqual(['EMFILE', 'EMFILE', 'EMFILE'])
  },
)
