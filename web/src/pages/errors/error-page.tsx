import { useResource } from '../../api/resource.ts'
import { Page } from '../../parts/page.tsx'
import { Empty, Loaded } from '../../parts/states.tsx'
import { BlockView } from './block-view.tsx'

/** Documentation of an error code. */
export function ErrorPage({ code }: { readonly code: string }) {
  const page = useResource(async () => (await import('./pages.ts')).pageOf(code), code)
  return (
    <Page title={code}>
      <div class="card">
        <Loaded of={page} what="the page">
          {(blocks) =>
            blocks === null ? (
              <Empty title="Unknown error code">
                <p class="quiet">This code is not one of Toolway's. It may come from a server.</p>
              </Empty>
            ) : (
              <div class="card-body stack prose">
                {blocks.slice(1).map((block, index) => (
                  <BlockView key={index} block={block} />
                ))}
              </div>
            )
          }
        </Loaded>
      </div>
    </Page>
  )
}
