import { ingressContract } from '../platform/ingress/contract.ts'
import { openTestEdge } from '../platform/ingress/edge.ts'

ingressContract('the edge on HAProxy', openTestEdge)
