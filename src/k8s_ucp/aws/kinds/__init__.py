"""The kinds of AWS resources that the simulated cloud accepts, one module per service.

Names of kinds and fields: https://marketplace.upbound.io/providers/upbound/provider-family-aws;
operations and parameters: https://docs.aws.amazon.com/AWSEC2/latest/APIReference and its siblings.
"""
