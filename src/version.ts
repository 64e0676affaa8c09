import { readFileSync } from 'node:fs'
import { packageFile } from './here.ts'

const { version: own } = JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as { version: string }

/** The version of this package. */
export const version: string = own
