import { expect, test } from 'vitest'
import { parseSealedLine, sealLine, zeroHash } from './record.ts'

const opened = (body: string) => parseSealedLine(Buffer.from(sealLine(body).line.slice(0, -1)))
const rest = `"operation":"o","prev":"${zeroHash}","seq":1,"time":"t"`

test('F11: a line with the right hash that is not canonical is reported as such', () => {
  expect(opened(`{${rest}}`)).toMatchObject({ ok: true, record: { seq: 1 } })
  for (const body of [
    `{"z":1,${rest}}`,
    `{"a": 1,${rest}}`,
    `{"a":1,"a":2,${rest}}`,
    `{"a":1e0,${rest}}`,
    `{"a":"\\u0061",${rest}}`,
  ]) {
    expect(opened(body), body).toMatchObject({ ok: false, wrong: 'canonical' })
  }
})

test('F11: a line that is not a record, or does not end with its hash, is reported as such', () => {
  for (const text of ['', '{}', 'null', '[]', '"x"', `{${rest}}`, `{"hash":"${zeroHash}",${rest}}`]) {
    expect(parseSealedLine(Buffer.from(text)), text).toMatchObject({ ok: false, wrong: 'form' })
  }
})
