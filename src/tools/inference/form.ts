import { randomUUID } from 'node:crypto'

export interface FormFile {
  readonly name: string
  readonly fileName: string
  readonly mimeType: string
  readonly bytes: Buffer
}

/** A form with one file, as browsers send it. Names are ours; a value cannot end its own part. */
export function formOf(fields: Readonly<Record<string, string>>, file: FormFile) {
  const boundary = `toolway-${randomUUID()}`
  const head = (name: string, more = '') => `--${boundary}\r\ncontent-disposition: form-data; name="${name}"${more}\r\n`
  const texts = Object.entries(fields).map(([name, value]) => `${head(name)}\r\n${value}\r\n`)
  const begin = `${head(file.name, `; filename="${file.fileName}"`)}content-type: ${file.mimeType}\r\n\r\n`
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    body: Buffer.concat([Buffer.from(texts.join('') + begin), file.bytes, Buffer.from(`\r\n--${boundary}--\r\n`)]),
  }
}
