import { type ErrorCode, errorKinds } from '../../src/core/errors.ts'
import { examples } from './examples.ts'
import { indexPage } from './index-page.ts'
import { pageOf } from './page.ts'
import { texts } from './texts.ts'

/** The pages of all codes and their index, by their path inside `docs`. */
export async function errorPages(): Promise<ReadonlyMap<string, string>> {
  const pages = new Map([['errors.md', indexPage(texts)]])
  for (const code of Object.keys(errorKinds) as ErrorCode[]) {
    pages.set(`errors/${code}.md`, pageOf(code, texts[code], await examples[code]()))
  }
  return pages
}
