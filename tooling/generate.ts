import { writeFile } from 'node:fs/promises'
import { editorSchema } from '../src/config/editor-schema.ts'

await writeFile(new URL('../toolway.schema.json', import.meta.url), `${JSON.stringify(editorSchema(), null, 2)}\n`)
