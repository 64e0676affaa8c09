/** The path of an endpoint, below that of the endpoint without a name. */
export const endpointPath = (path: string, name: string | undefined): string =>
  name === undefined ? path : `${path.replace(/\/$/, '')}/${name}`
